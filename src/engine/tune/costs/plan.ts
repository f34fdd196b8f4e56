import { type EngineSizes, reservedCells } from "../../device/buffers.ts";
import { batchBuckets, rowBuckets } from "../../device/buckets.ts";
import { PAGE } from "../../../model/device_layout.ts";
import { WINDOW } from "./lanes.ts";
import {
  catchUpProbe,
  packingProbe,
  prefillProbe,
  type Probe,
  type ProbeParts,
  roundProbe,
} from "./probes.ts";

/** The costs that have to be measured. */
export interface ProbePlanRequest {
  /** Sequences, the most; at most the capacity's. */
  readonly maxBatch: number;
  /** Draft levels that rounds may have, rising. */
  readonly depths: readonly number[];
  /** Rows of a prefill's chunk. */
  readonly chunkRows: number;
  /** Tokens of a long context. */
  readonly longContext: number;
  /**
   * Prompts that are measured: "few" of them, "all" lengths that programs are made for up to a chunk's, or "only" these
   * and nothing else; default: few.
   */
  readonly prompts?: "few" | "all" | "only";
}

/** Tokens of a context that costs next to nothing. */
export const SHORT_CONTEXT = 24;

/** Contexts at which the cost of attention is measured: the longest one that can be stored in time is used. */
export const LONG_CONTEXTS = [2056, 1032, 520, 264, 136, 72] as const;

/** Batch of the round at which packing is measured, if the engine allows as many. */
const USUAL_BATCH = 8;

/** Tokens that a draft has missed of each sequence. */
const LAGS = [1, 4, 16, 64] as const;

/** Tokens of prompts whose prefill is always measured. */
const PROMPTS = [8, 64] as const;

/** Whether slots can hold such a context and what measuring adds to it. */
export function holds({ runner }: Pick<ProbeParts, "runner">, context: number): boolean {
  const { capacity, pool } = runner;
  const cells = reservedCells(capacity, context + 2 * WINDOW);
  return cells <= capacity.contextLength && cells <= pool.free * 16;
}

/**
 * All probes that are worth measuring, the most important first. There is no table without those below rank 0; those of
 * rank 0 are the ends of every list. Then come batches of powers of two and long contexts, then the others.
 */
export function costProbes(parts: ProbeParts, asked: ProbePlanRequest): Probe[] {
  if (asked.prompts === "only") return prefillProbes(parts, asked);
  const probes = [
    ...roundProbes(parts, asked),
    ...packingProbes(parts, asked),
    ...catchUpProbes(parts, asked),
    ...prefillProbes(parts, asked),
  ];
  return probes.toSorted((a, b) => a.rank - b.rank || a.context - b.context);
}

function roundProbes(
  parts: ProbeParts,
  { maxBatch, depths, longContext }: ProbePlanRequest,
): Probe[] {
  const deepest = depths.at(-1) ?? 0;
  const short = batchBuckets(maxBatch).flatMap((batch) =>
    depths.map((steps) => {
      const least = (batch === 1 && steps === 0) || steps === deepest;
      const rank = 2 * (batchRank(batch, maxBatch) + depthRank(steps, deepest));
      const needed = rank === 0 && least ? -1 : rank;
      return roundProbe(parts, { batch, steps, context: SHORT_CONTEXT }, needed);
    })
  );
  if (longContext === SHORT_CONTEXT) return short;
  const ends = [...new Set([0, deepest])];
  const long = [...new Set([maxBatch, 1])].flatMap((batch, i) =>
    ends.map((steps) => roundProbe(parts, { batch, steps, context: longContext }, 1 + 2 * i))
  );
  return [...short, ...long];
}

/** A probe at the usual batch size: the device's choice takes longer with larger ones, the host's part does not. */
function packingProbes(parts: ProbeParts, { maxBatch, depths }: ProbePlanRequest): Probe[] {
  const steps = depths.at(-1) ?? 0;
  const batch = Math.min(maxBatch, USUAL_BATCH);
  if (steps === 0 || !parts.runner.programs.packs) return [];
  return [packingProbe(parts, { batch, steps, context: SHORT_CONTEXT }, 1)];
}

function catchUpProbes(
  parts: ProbeParts,
  { maxBatch, depths, longContext }: ProbePlanRequest,
): Probe[] {
  if (parts.runner.draft !== "catches up" || depths.at(-1) === 0) return [];
  return LAGS.filter((lag) => lag <= longContext).flatMap((lag) => {
    const context = lag <= SHORT_CONTEXT ? SHORT_CONTEXT : longContext;
    return [...new Set([1, maxBatch])].map((batch) =>
      catchUpProbe(parts, { batch, lag, context }, lag === 16 ? 0 : lag * batch === 1 ? 1 : 3)
    );
  });
}

function prefillProbes(
  parts: ProbeParts,
  { chunkRows, longContext, prompts = "few" }: ProbePlanRequest,
): Probe[] {
  if (prompts !== "few") {
    const lengths = promptLengths(parts.runner.capacity, chunkRows);
    // Both ends are needed. A prompt longer than a chunk shows what attention to the tokens before costs.
    const rankOf = (i: number) => i === lengths.length - 1 ? -1 : i === 0 ? 0 : 1;
    const long = 4 * chunkRows < room(parts.runner.capacity) ? [4 * chunkRows] : [];
    return [...lengths, ...long].map((tokens, i) =>
      prefillProbe(parts, { tokens, chunkRows }, rankOf(i))
    );
  }
  return [...new Set([...PROMPTS, chunkRows, 4 * chunkRows])]
    .filter((tokens) => tokens <= Math.max(longContext, Math.max(...PROMPTS)))
    .map((tokens) =>
      prefillProbe(parts, { tokens, chunkRows }, PROMPTS.some((each) => each === tokens) ? 0 : 3)
    );
}

/** Tokens that a sequence has room for. */
function room({ contextLength, pages }: Pick<EngineSizes, "contextLength" | "pages">): number {
  return Math.min(contextLength, (pages - 1) * PAGE);
}

/** Tokens of prompts that fill the programs of a chunk, as far as a sequence has room for them and one more. */
export function promptLengths(
  capacity: Pick<EngineSizes, "contextLength" | "pages">,
  chunkRows: number,
): number[] {
  return rowBuckets(chunkRows).filter((tokens) => tokens < room(capacity));
}

function batchRank(batch: number, most: number): number {
  if (batch === 1 || batch === most) return 0;
  return Number.isInteger(Math.log2(batch)) ? 1 : 2;
}

function depthRank(steps: number, deepest: number): number {
  if (steps === 0 || steps === deepest) return 0;
  return steps === 1 || steps === 3 ? 1 : 2;
}
