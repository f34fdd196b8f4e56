/**
 * Two-sided CUSUM of residuals that have mean 0 and variance 1 while nothing changes:
 *
 *     up = max(0, up + z - SLACK),    down = max(0, down - z - SLACK)
 *
 * Either above ALARM says that the mean has moved (Page 1954).
 */
export interface Cusum {
  readonly up: number;
  readonly down: number;
}

/** Half of the shift that is to be found soonest, in standard deviations. */
const SLACK = 0.5;
/** An alarm of chance about every 470 residuals, on each side every 940 (Siegmund's approximation). */
const ALARM = 5;

export const NO_CHANGE: Cusum = { up: 0, down: 0 };

/** Adds a residual; after an alarm it starts again. */
export function watch(
  { up, down }: Cusum,
  z: number,
): { readonly cusum: Cusum; readonly changed: boolean } {
  if (!Number.isFinite(z)) return { cusum: { up, down }, changed: false };
  const cusum = { up: Math.max(0, up + z - SLACK), down: Math.max(0, down - z - SLACK) };
  const changed = Math.max(cusum.up, cusum.down) > ALARM;
  return { cusum: changed ? NO_CHANGE : cusum, changed };
}
