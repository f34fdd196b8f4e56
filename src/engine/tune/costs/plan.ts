import { reservedCells } from "../../device/buffers.ts";
import { batchBuckets } from "../../device/programs.ts";
import { WINDOW } from "./lanes.ts";
import { catchUpProbe, prefillProbe, type Probe, type ProbeParts, roundProbe } from "./probes.ts";

/** What is to be known. */
export interface PlanAsked {
  /** Sequences, the most; at most the capacity's. */
  readonly maxBatch: number;
  /** Draft levels that rounds may have, rising. */
  readonly depths: readonly number[];
  /** Rows of a prefill's chunk. */
  readonly chunkRows: number;
  /** Tokens of a long context. */
  readonly longContext: number;
}

/** Tokens of a context that costs next to nothing. */
export const SHORT_CONTEXT = 24;

/** Contexts that attention's cost is seen at: the longest that can be made in time. */
export const LONG_CONTEXTS = [2056, 1032, 520, 264, 136, 72] as const;

/** Whether slots can hold such a context and what measuring adds to it. */
export function holds({ core }: Pick<ProbeParts, "core">, context: number): boolean {
  const { capacity, pool } = core;
  const cells = reservedCells(capacity, context + 2 * WINDOW);
  return cells <= capacity.contextLength && cells <= pool.free * 16;
}

/**
 * All that would be worth to be measured, the most important first: rounds of the smallest and the
 * largest batch without drafts and with the most, then powers of two between them, then the others.
 */
export function costProbes(parts: ProbeParts, asked: PlanAsked): Probe[] {
  const { maxBatch, depths, chunkRows, longContext } = asked;
  const batches = batchBuckets(maxBatch);
  const deepest = depths.at(-1) ?? 0;
  const rounds = batches.flatMap((batch) =>
    depths.map((steps) => {
      const rank = batchRank(batch, maxBatch) + depthRank(steps, deepest);
      return roundProbe(parts, { batch, steps, context: SHORT_CONTEXT }, 2 * rank);
    })
  );
  const long = [...new Set([maxBatch, 1])].flatMap((batch, i) =>
    [...new Set([0, deepest])].map((steps) =>
      roundProbe(parts, { batch, steps, context: longContext }, 1 + 2 * i)
    )
  );
  const contextFor = (lag: number) => lag < SHORT_CONTEXT ? SHORT_CONTEXT : longContext;
  const lags = parts.core.draft !== "catches up" || deepest === 0
    ? []
    : [...new Set([1, 4, 16, 64].map((lag) => Math.min(lag, longContext)))].flatMap((lag) =>
      [...new Set([1, maxBatch])].map((batch) =>
        catchUpProbe(parts, { batch, lag, context: contextFor(lag) }, lag === 16 ? 1 : 3)
      )
    );
  const prefills = [8, chunkRows, 4 * chunkRows]
    .filter((tokens) => tokens < longContext + WINDOW)
    .map((tokens) => prefillProbe(parts, { tokens, chunkRows }, tokens === chunkRows ? 1 : 3));
  return [...rounds, ...long, ...lags, ...prefills]
    .toSorted((a, b) => a.rank - b.rank || a.context - b.context);
}

function batchRank(batch: number, most: number): number {
  if (batch === 1 || batch === most) return 0;
  return Number.isInteger(Math.log2(batch)) ? 1 : 2;
}

function depthRank(steps: number, deepest: number): number {
  if (steps === 0 || steps === deepest) return 0;
  return steps === 1 || steps === 3 ? 1 : 2;
}
