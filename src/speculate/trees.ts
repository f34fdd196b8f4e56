import type { DraftShape } from "./round_shape.ts";

/**
 * What is drafted for one sequence: a tree of tokens below its pending token, the root. Row 0 of a
 * verify forward is the root, row i + 1 is token i.
 */
export interface Proposal {
  /** Token ids, [count]. */
  readonly tokens: readonly number[];
  /** The row of each token's parent, at most i for token i, [count]. */
  readonly parents: readonly number[];
}

/** No draft: the round is one step of plain decoding for this sequence. */
export const NO_PROPOSAL: Proposal = { tokens: [], parents: [] };

/** Tokens that follow each other, without alternatives. */
export function chainOf(tokens: readonly number[]): Proposal {
  return { tokens, parents: tokens.map((_, i) => i) };
}

/**
 * The number of candidates from which the nodes of EAGLE-2's tree are chosen: `width` at the first level,
 * then `width` children of each of the `width` best nodes (SGLang `organize_draft_results`).
 */
export function poolSize({ depth, width }: Pick<DraftShape, "depth" | "width">): number {
  return width + (depth - 1) * width * width;
}

/** The level of each row, [count + 1]: the root is at 0. */
export function depthsOf({ parents }: Proposal): number[] {
  const depths = [0];
  for (const parent of parents) depths.push((depths[parent] ?? NaN) + 1);
  return depths;
}

/** The rows from the root to `row`, both included. */
export function pathTo({ parents }: Proposal, row: number): number[] {
  const path = [row];
  for (let at = row; at > 0;) path.unshift(at = parents[at - 1] ?? 0);
  return path;
}
