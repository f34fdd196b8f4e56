/** Rounds of one padded batch, depth and number of verify rows, which run the same programs, weighted by age. */
export interface TimedCell {
  readonly bucket: number;
  readonly steps: number;
  /** With padding; fewer than bucket * (steps + 1) where not all drafts are verified. */
  readonly rows: number;
  readonly rounds: number;
  /** Means: milliseconds, tokens stored over all sequences. */
  readonly ms: number;
  readonly cells: number;
}

/** In the order that they were first seen. */
export type RoundTimings = readonly TimedCell[];

/** Each round multiplies the weight of earlier rounds of its cell by this. */
const FADE = 0.97;
/** A time is clamped to at most this factor above the mean and at most this factor below it. */
const USUAL = 3;

/** The mean time of rounds of one kind, weighted by age. */
export type MeanTime = Pick<TimedCell, "rounds" | "ms">;

/** Adds a round. @returns the mean, and the time that the round counts with. */
export function addTime(
  old: MeanTime | undefined,
  ms: number,
): { readonly mean: MeanTime; readonly clamped: number } {
  // The first round may include compiling a program: a much shorter time replaces the mean of the first few.
  if (old === undefined || old.rounds < USUAL && ms < old.ms / USUAL) {
    return { mean: { rounds: 1, ms }, clamped: ms };
  }
  const clamped = Math.min(old.ms * USUAL, Math.max(old.ms / USUAL, ms));
  const rounds = old.rounds * FADE + 1;
  return { mean: { rounds, ms: old.ms + (clamped - old.ms) / rounds }, clamped };
}

/** Adds a round. A round with an impossible time or impossible counts is left out. */
export function timeRound(
  times: RoundTimings,
  round: Omit<TimedCell, "rounds">,
): RoundTimings {
  const { bucket, steps, rows, ms, cells } = round;
  if (!(ms > 0 && ms < 1e9) || !(bucket > 0) || !Number.isFinite(rows + cells)) return times;
  const at = times.findIndex((each) =>
    each.bucket === bucket && each.steps === steps && each.rows === rows
  );
  const old = times[at];
  if (old === undefined) return [...times, { ...round, rounds: 1 }];
  const { mean } = addTime(old, ms);
  const stored = old.cells + (cells - old.cells) / mean.rounds;
  return times.with(at, { bucket, steps, rows, ...mean, cells: stored });
}

/** How the times of rounds differ from a table's. */
export interface TimeFit {
  /** Factor of a round's price. */
  factor(bucket: number, steps: number): number;
}

export interface FitOptions {
  /** Weight of the table, in rounds, against a factor that is common to all rounds. */
  readonly level: number;
  /** Weight of the table, in rounds, against a trend by depth. */
  readonly slope: number;
  /** Weight of the common fit, in rounds, against a deviation of one bucket or of one bucket and depth. */
  readonly own: number;
}

export const NO_FIT: TimeFit = { factor: () => 1 };

/**
 * Fits y = ln(measured / priced) of the cells, with a ridge on what is not common to all:
 *
 *     y(bucket, K) = a + c K + rest(bucket) + rest(bucket, K)
 *
 * so that depths and buckets that have not run are priced by those that have.
 *
 * @param price milliseconds that the table says of a cell.
 */
export function fitTimes(
  times: RoundTimings,
  price: (cell: TimedCell) => number,
  { level: common, slope, own }: FitOptions,
): TimeFit {
  const cells = times.map((cell) => ({ ...cell, y: Math.log(cell.ms / price(cell)) }))
    .filter(({ y }) => Number.isFinite(y));
  const weight = total(cells, ({ rounds }) => rounds);
  if (weight === 0) return NO_FIT;
  const middle = total(cells, ({ rounds, steps }) => rounds * steps) / weight;
  const level = total(cells, ({ rounds, y }) => rounds * y) / (weight + common);
  const spread = total(cells, ({ rounds, steps }) => rounds * (steps - middle) ** 2);
  const tilt = total(cells, ({ rounds, steps, y }) => rounds * (steps - middle) * (y - level)) /
    (spread + slope);
  const line = (steps: number) => level + tilt * (steps - middle);
  const offset = new Map<number, number>();
  const offsetOf = (bucket: number) => {
    const known = offset.get(bucket);
    if (known !== undefined) return known;
    const here = cells.filter((cell) => cell.bucket === bucket);
    const rest = total(here, ({ rounds, steps, y }) => rounds * (y - line(steps)));
    const found = rest / (total(here, ({ rounds }) => rounds) + own);
    offset.set(bucket, found);
    return found;
  };
  return {
    factor(bucket, steps) {
      const usual = line(steps) + offsetOf(bucket);
      const here = cells.filter((each) => each.bucket === bucket && each.steps === steps);
      const rest = total(here, ({ rounds, y }) => rounds * (y - usual)) /
        (total(here, ({ rounds }) => rounds) + own);
      return Math.exp(usual + rest);
    },
  };
}

function total<Item>(items: readonly Item[], of: (item: Item) => number): number {
  let sum = 0;
  for (const item of items) sum += of(item);
  return sum;
}
