/** Outcome of a goodness-of-fit test. */
export interface GTest {
  /** 2 * sum(observed * ln(observed / expected)), near chi-square with `freedom` degrees. */
  readonly statistic: number;
  readonly freedom: number;
  /** Probability of a statistic at least this large if the law is right. */
  readonly p: number;
}

/**
 * G-test of counts against a law. Cells with an expected count below 5 are pooled into one, where
 * the chi-square law would not hold. A count in a cell of probability 0 gives p = 0.
 * @param counts Observed draws of each outcome.
 * @param law Probability of each outcome, summing to 1.
 */
export function gTest(counts: readonly number[], law: readonly number[]): GTest {
  const total = counts.reduce((sum, count) => sum + count, 0);
  const cells = counts.map((observed, cell) => ({
    observed,
    expected: total * (law[cell] ?? NaN),
  }));
  if (cells.some(({ observed, expected }) => expected === 0 && observed > 0)) {
    return { statistic: Infinity, freedom: 0, p: 0 };
  }
  const rare = cells.filter(({ expected }) => expected < 5);
  const pool = {
    observed: rare.reduce((sum, cell) => sum + cell.observed, 0),
    expected: rare.reduce((sum, cell) => sum + cell.expected, 0),
  };
  const kept = [...cells.filter(({ expected }) => expected >= 5), pool]
    .filter(({ expected }) => expected > 0);
  const statistic = 2 * kept.reduce(
    (sum, { observed, expected }) =>
      sum + (observed === 0 ? 0 : observed * Math.log(observed / expected)),
    0,
  );
  const freedom = Math.max(0, kept.length - 1);
  return { statistic, freedom, p: freedom === 0 ? 1 : chiSquareSurvival(statistic, freedom) };
}

/** P(X >= x) of a chi-square variable: Q(freedom / 2, x / 2), the upper incomplete gamma ratio. */
export function chiSquareSurvival(x: number, freedom: number): number {
  const [a, z] = [freedom / 2, x / 2];
  if (z <= 0) return 1;
  return z < a + 1 ? 1 - lowerSeries(a, z) : upperFraction(a, z);
}

/** P(a, z) by its power series (Numerical Recipes 6.2.5), for z < a + 1. */
function lowerSeries(a: number, z: number): number {
  let term = 1 / a;
  let sum = term;
  for (let n = 1; term > sum * Number.EPSILON; n++) {
    term *= z / (a + n);
    sum += term;
  }
  return sum * Math.exp(-z + a * Math.log(z) - logGamma(a));
}

/** Q(a, z) by its continued fraction (Numerical Recipes 6.2.7, Lentz), for z >= a + 1. */
function upperFraction(a: number, z: number): number {
  let b = z + 1 - a;
  let c = Infinity;
  let d = 1 / b;
  let fraction = d;
  for (let n = 1; n < 1000; n++) {
    const an = -n * (n - a);
    b += 2;
    d = 1 / (an * d + b);
    c = b + an / c;
    fraction *= c * d;
    if (Math.abs(c * d - 1) < Number.EPSILON) break;
  }
  return fraction * Math.exp(-z + a * Math.log(z) - logGamma(a));
}

/** ln(gamma(x)) for x > 0: Stirling's series, after shifting x to at least 10. */
function logGamma(x: number): number {
  let shift = 0;
  let y = x;
  for (; y < 10; y++) shift += Math.log(y);
  const series = 1 / (12 * y) - 1 / (360 * y ** 3) + 1 / (1260 * y ** 5) - 1 / (1680 * y ** 7);
  return (y - 0.5) * Math.log(y) - y + Math.log(2 * Math.PI) / 2 + series - shift;
}
