import type { CostTable, Point } from "./table.ts";

/** A round to be priced. */
export interface PricedRound {
  /** Sequences. */
  readonly batch: number;
  /** Draft levels; 0 = plain decoding. */
  readonly steps: number;
  /** Drafts verified over all sequences; absent: batch * steps. */
  readonly drafts?: number;
  /** Tokens stored, over all sequences. */
  readonly cells: number;
  /** Rounds submitted at once; default 1. */
  readonly roundsPerSync?: number;
}

/**
 * Milliseconds of one round:
 *
 *     (K - 1) level(b) + verify(b + drafts) + cells perCell + extend(b (K + 1)) + host / rounds a sync
 *
 * b is the padded batch; without drafts there is neither level nor extend. A verify forward that has
 * rows for all drafts pads them with the batch.
 */
export function roundMs(costs: CostTable, round: PricedRound): number {
  const { batch, steps, cells, roundsPerSync = 1 } = round;
  const padded = paddedBatch(costs, batch);
  const all = batch * steps;
  const drafts = Math.min(round.drafts ?? all, all);
  const rows = drafts === all ? padded * (steps + 1) : batch + drafts;
  const verify = at(costs.verify, rows) + Math.max(0, cells) * costs.perCell;
  const host = costs.host / Math.max(1, roundsPerSync);
  if (steps <= 0) return verify + host;
  return (steps - 1) * at(costs.level, padded) + verify + at(costs.extend, padded * (steps + 1)) +
    host;
}

/** Milliseconds of the draft's prefill where it has missed `tokens`, over all sequences. */
export function catchUpMs({ catchUp }: CostTable, tokens: number): number {
  return tokens <= 0 ? 0 : at(catchUp, tokens);
}

/** Milliseconds of a prompt's prefill. */
export function prefillMs({ prefill }: CostTable, tokens: number): number {
  return tokens <= 0 ? 0 : at(prefill, tokens);
}

/** The batch size whose programs such a round runs. */
export function paddedBatch({ buckets }: CostTable, batch: number): number {
  return buckets.find((bucket) => bucket >= batch) ?? batch;
}

/**
 * Milliseconds at a count: between two points along their line, before the first as it is there,
 * beyond the last in proportion to the last two. 0 of an empty list.
 */
export function at(points: readonly Point[], count: number): number {
  const above = points.findIndex((point) => point.at >= count);
  const last = points.at(-1);
  if (last === undefined) return 0;
  if (above === 0) return points[0]?.ms ?? 0;
  const end = above < 0 ? points.length - 1 : above;
  const [a, b] = [points[end - 1] ?? last, points[end] ?? last];
  if (a.at === b.at) return b.ms;
  return Math.max(0, a.ms + (b.ms - a.ms) * (count - a.at) / (b.at - a.at));
}
