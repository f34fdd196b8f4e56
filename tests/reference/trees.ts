import type { Proposal } from "../../src/speculate/trees.ts";
import type { Acceptance } from "./acceptance.ts";

/** Tokens that follow each other. */
export function chainOf(tokens: readonly number[]): Proposal {
  return { tokens, parents: tokens.map((_, i) => i) };
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
