/** Ridge regression with three features, and the values that a linear bandit needs from it. */

export type Vector = readonly [number, number, number];

/** A = lambda I + sum x x^T, as its upper triangle by rows, and b = sum r x. */
export interface Regression {
  readonly a: readonly [number, number, number, number, number, number];
  readonly b: Vector;
}

export function ridge(lambda: number): Regression {
  return { a: [lambda, 0, 0, lambda, 0, lambda], b: [0, 0, 0] };
}

/**
 * Adds an observation of `reward` at x. Earlier observations are multiplied by `discount`, the ridge is not
 * (Russac et al. 2019, D-LinUCB).
 */
export function observe(
  { a, b }: Regression,
  { x, reward, discount, lambda }: {
    readonly x: Vector;
    readonly reward: number;
    readonly discount: number;
    readonly lambda: number;
  },
): Regression {
  const kept = (1 - discount) * lambda;
  const [x0, x1, x2] = x;
  return {
    a: [
      ...[discount * a[0] + x0 * x0 + kept, discount * a[1] + x0 * x1] as const,
      ...[discount * a[2] + x0 * x2, discount * a[3] + x1 * x1 + kept] as const,
      ...[discount * a[4] + x1 * x2, discount * a[5] + x2 * x2 + kept] as const,
    ],
    b: [
      discount * b[0] + reward * x0,
      discount * b[1] + reward * x1,
      discount * b[2] + reward * x2,
    ],
  };
}

/** L of A = L L^T by Cholesky, lower triangle by rows: [l00, l10, l11, l20, l21, l22]. */
type Lower = readonly [number, number, number, number, number, number];

export function factor({ a: [a00, a01, a02, a11, a12, a22] }: Regression): Lower {
  const l00 = Math.sqrt(a00);
  const [l10, l20] = [a01 / l00, a02 / l00];
  const l11 = Math.sqrt(Math.max(Number.MIN_VALUE, a11 - l10 * l10));
  const l21 = (a12 - l20 * l10) / l11;
  const l22 = Math.sqrt(Math.max(Number.MIN_VALUE, a22 - l20 * l20 - l21 * l21));
  return [l00, l10, l11, l20, l21, l22];
}

/** L^-1 v */
export function forward([l00, l10, l11, l20, l21, l22]: Lower, [v0, v1, v2]: Vector): Vector {
  const y0 = v0 / l00;
  const y1 = (v1 - l10 * y0) / l11;
  return [y0, y1, (v2 - l20 * y0 - l21 * y1) / l22];
}

/** L^-T v */
export function backward([l00, l10, l11, l20, l21, l22]: Lower, [v0, v1, v2]: Vector): Vector {
  const y2 = v2 / l22;
  const y1 = (v1 - l21 * y2) / l11;
  return [(v0 - l10 * y1 - l20 * y2) / l00, y1, y2];
}

export function dot([a0, a1, a2]: Vector, [b0, b1, b2]: Vector): number {
  return a0 * b0 + a1 * b1 + a2 * b2;
}
