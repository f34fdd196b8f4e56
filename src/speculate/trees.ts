import type { Acceptance } from "./acceptance.ts";

/**
 * What is drafted for one sequence: a tree of tokens below its pending token, the root. Row 0 of a
 * verify forward is the root, row i + 1 is token i.
 */
export interface Proposal {
  /** Token ids, [count]. */
  readonly tokens: readonly number[];
  /** Of each token the row of the one before it, at most i for token i, [count]. */
  readonly parents: readonly number[];
}

/** No draft: the round is one step of plain decoding for this sequence. */
export const NO_PROPOSAL: Proposal = { tokens: [], parents: [] };

/** Tokens that follow each other. */
export function chainOf(tokens: readonly number[]): Proposal {
  return { tokens, parents: tokens.map((_, i) => i) };
}

/** Levels of each row below the root, [count + 1]: the root is at 0. */
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

/** What one round of verification adds to the sequence, and which rows were right. */
export interface TreeAcceptance extends Acceptance {
  /** The root and the rows of the accepted drafts, [accepted + 1]. */
  readonly rows: readonly number[];
}

/**
 * Goes from the root to the first child whose token is what the target chose, until there is none;
 * what it chose there is the bonus. For chains this is `acceptChain`.
 *
 * @param choices the target's id at each row, [count + 1] or more.
 */
export function acceptTree(
  { tokens, parents }: Proposal,
  choices: readonly number[],
): TreeAcceptance {
  const rows = [0];
  const ids: number[] = [];
  while (true) {
    const at = rows.at(-1) as number;
    const choice = choices[at] as number;
    ids.push(choice);
    const child = tokens.findIndex((token, i) => parents[i] === at && token === choice);
    if (child < 0) return { accepted: rows.length - 1, ids, rows };
    rows.push(child + 1);
  }
}
