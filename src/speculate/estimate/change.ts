/**
 * Two-sided CUSUM of residuals that have mean 0 and variance 1 while nothing changes:
 *
 *     up = max(0, up + z - slack),    down = max(0, down - z - slack)
 *
 * Either above `alarm` says that the mean has moved (Page 1954).
 */
export interface Cusum {
  readonly up: number;
  readonly down: number;
}

export interface CusumOptions {
  /** Half of the shift that is to be found soonest, in standard deviations. */
  readonly slack: number;
  readonly alarm: number;
}

/** An alarm of chance about every 900 residuals (Siegmund's approximation at slack 0.5, alarm 5). */
export const CUSUM_OPTIONS: CusumOptions = { slack: 0.5, alarm: 5 };

export const NO_CHANGE: Cusum = { up: 0, down: 0 };

/** Adds a residual; after an alarm it starts again. */
export function watch(
  { up, down }: Cusum,
  z: number,
  { slack, alarm }: CusumOptions = CUSUM_OPTIONS,
): { readonly cusum: Cusum; readonly changed: boolean } {
  if (!Number.isFinite(z)) return { cusum: { up, down }, changed: false };
  const cusum = { up: Math.max(0, up + z - slack), down: Math.max(0, down - z - slack) };
  const changed = Math.max(cusum.up, cusum.down) > alarm;
  return { cusum: changed ? NO_CHANGE : cusum, changed };
}
