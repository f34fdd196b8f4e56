import type { DraftShape } from "./round_shape.ts";

/** [steps, topk, draft tokens] of `candidate_trees`. */
export type TreeEntry = readonly [steps: number, topk: number, draftTokens: number];

/** A tree as adaptive configs name it. */
export function treeEntry({ depth, width, rows }: DraftShape): TreeEntry {
  return [depth, width, rows];
}

/** What won at one batch size. */
export interface Winner {
  readonly batchSize: number;
  /** Steps of chains. A single value fixes the bracket; with several, acceptance chooses among them at run time. */
  readonly steps: readonly number[];
  readonly tree?: TreeEntry | undefined;
}

/** A batch-size entry as SGLang's file has it. */
export interface SlotEntry {
  readonly candidate_steps: readonly number[];
  /** Eyrie's own field: SGLang ignores it and runs a chain of as many steps. */
  readonly candidate_trees?: readonly TreeEntry[];
  readonly up_hysteresis: number;
  readonly down_hysteresis: number;
  readonly ceiling_coeff: number;
}

/**
 * What `--speculative-adaptive-config` reads, here and in SGLang: each batch size, and all up to
 * the next, runs the steps that won at it.
 */
export function emitConfig(winners: readonly Winner[]): Readonly<Record<string, SlotEntry>> {
  return Object.fromEntries(winners.map(({ batchSize, steps, tree }) => [String(batchSize), {
    candidate_steps: [...new Set([...steps, ...tree ? [tree[0]] : []])].toSorted((a, b) => a - b),
    ...tree ? { candidate_trees: [tree] } : {},
    up_hysteresis: 0,
    down_hysteresis: -0.25,
    ceiling_coeff: 0,
  }]));
}
