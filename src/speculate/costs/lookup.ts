import { programRows } from "./cost_buckets.ts";
import type { CostTable, Point } from "./table.ts";

/** A round to be priced. */
export interface PricedRound {
  /** Sequences. */
  readonly batch: number;
  /** Draft levels; 0 = plain decoding. */
  readonly steps: number;
  /** Drafts verified over all sequences; absent: batch * steps. */
  readonly drafts?: number | undefined;
  /** Tokens stored, over all sequences. */
  readonly cells: number;
  /** Rounds submitted at once; default 1. */
  readonly roundsPerSync?: number;
}

/**
 * Milliseconds of one round:
 *
 *     (K - 1) level(b) + verify(rows) + cells (perCell + (1 + drafts / batch) perRowCell)
 *       + extend(rows) + host / rounds a sync (+ packing)
 *
 * b is the padded batch; without drafts there is neither level nor extend. A round that verifies all drafts
 * has b (K + 1) rows. A packed round, which verifies fewer, has batch + drafts rows, rounded up to a row
 * bucket, and costs `packing` in addition.
 */
export function roundMs(costs: CostTable, round: PricedRound): number {
  return totalMs(roundParts(costs, round));
}

/** Milliseconds of a round's parts. */
export interface RoundParts {
  /** All levels. */
  readonly draft: number;
  readonly verify: number;
  readonly extend: number;
  /** Milliseconds of the host: an equal part of its group's, with `packing`. */
  readonly host: number;
}

/** Milliseconds of a round, all parts together. */
export function totalMs({ draft, verify, extend, host }: RoundParts): number {
  return draft + verify + extend + host;
}

/** The terms of `roundMs`. */
export function roundParts(costs: CostTable, round: PricedRound): RoundParts {
  const { batch, steps, cells, roundsPerSync = 1 } = round;
  const padded = paddedBatch(costs, batch);
  const all = batch * steps;
  const { drafts = all } = round;
  const rows = programRows({ sequences: batch, drafts, batch: padded, depth: steps });
  const isPacked = rows < padded * (steps + 1);
  const rowsEach = isPacked ? 1 + Math.max(0, drafts) / batch : steps + 1;
  const perCell = costs.perCell + product(rowsEach, costs.perRowCell ?? 0);
  const ratio = ratioOf(costs, padded, steps);
  return {
    draft: product(steps - 1, at(costs.level, padded)) * ratio,
    verify: (at(costs.verify, rows) + product(cells, perCell)) * ratio,
    extend: steps > 0 ? at(costs.extend, rows) * ratio : 0,
    host: (product(1 / Math.max(1, roundsPerSync), costs.host) +
      (isPacked ? costs.packing ?? 0 : 0)) * ratio,
  };
}

/** The product, or 0 if one factor is not above 0 (the other may then be NaN or infinite). */
function product(count: number, ms: number): number {
  return count > 0 && ms > 0 ? count * ms : 0;
}

/**
 * Measured over predicted round time (refine.ts): 1 if no round was seen, the factor of all rounds if none of this
 * batch and steps was. @param batch padded.
 */
export function ratioOf({ refined }: CostTable, batch: number, steps: number): number {
  if (refined === undefined) return 1;
  const own = refined.rounds.find((each) => each.batch === batch && each.steps === steps);
  return refined.all * (own?.ratio ?? 1);
}

/** Milliseconds of the draft's prefill where it has missed `tokens`, over all sequences. */
export function catchUpMs({ catchUp, refined }: CostTable, tokens: number): number {
  return tokens > 0 ? at(catchUp, tokens) * (refined?.catchUp ?? 1) : 0;
}

/** A part of a prompt: tokens `from` to `to`. */
export interface PricedChunk {
  readonly from: number;
  readonly to: number;
}

/** Milliseconds of a forward of tokens `from` to `to` of one prompt (`promptsMs`). */
export function prefillMs(costs: CostTable, to: number, from = 0): number {
  return promptsMs(costs, [{ from, to }]);
}

/**
 * Milliseconds of a forward of chunks of prompts: that of a prompt of as many tokens as all rows, and for each chunk
 * the time of its attention to the tokens before it, which does not depend on the other chunks:
 *
 *     prefill(rows) + sum(max(0, prefill(to) - prefill(from) - prefill(to - from)))
 *
 * @param padded rows of the forward with padding; default: the sum of to - from.
 */
export function promptsMs(
  { prefill, refined }: CostTable,
  chunks: readonly PricedChunk[],
  padded = 0,
): number {
  let [rows, more] = [padded, 0];
  for (const { from, to } of chunks) {
    if (!(to > from)) continue;
    if (padded === 0) rows += to - from;
    if (from > 0) {
      more += Math.max(0, at(prefill, to) - at(prefill, from) - at(prefill, to - from));
    }
  }
  return rows > 0 ? (at(prefill, rows) + more) * (refined?.prefill ?? 1) : 0;
}

/** The batch size whose programs such a round runs. */
export function paddedBatch({ buckets }: CostTable, batch: number): number {
  return buckets.find((bucket) => bucket >= batch) ?? batch;
}

/**
 * Milliseconds at a count: interpolated linearly between two points, constant before the first, and
 * extrapolated from the last two beyond the last. 0 for an empty list. NaN is treated as before the first.
 */
export function at(points: readonly Point[], count: number): number {
  const [first] = points;
  if (first === undefined) return 0;
  if (!(count > first.at) || points.length === 1) return first.ms;
  let end = 1;
  while (end < points.length - 1 && (points[end]?.at ?? 0) < count) end++;
  const [a = first, b = first] = [points[end - 1], points[end]];
  const slope = b.at > a.at ? (b.ms - a.ms) / (b.at - a.at) : 0;
  return slope === 0 ? b.ms : Math.max(0, a.ms + slope * (count - a.at));
}
