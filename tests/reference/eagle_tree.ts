/**
 * EAGLE's draft tree as SGLang builds it (select_top_k_tokens, organize_draft_results,
 * build_tree_kernel_efficient), in plain numbers for one request.
 */
import type { Proposal } from "../../src/speculate/trees.ts";

/** What the draft levels found: k candidates at level 0, k for each of k before at the others. */
export interface DraftLevels {
  readonly k: number;
  /** Products of probabilities from the root on, [k] and [k * k]. */
  readonly scores: readonly (readonly number[])[];
  readonly tokens: readonly (readonly number[])[];
}

/** Indices of the `count` largest, largest first; of equal ones the first. */
function largest(values: readonly number[], count: number): number[] {
  return [...values.keys()]
    .sort((a, b) => (values[b] as number) - (values[a] as number) || a - b)
    .slice(0, count);
}

/** For each level the places, in all candidates before it, of what it goes on from. */
export function levelParents({ k, scores }: DraftLevels): number[][] {
  return scores.map((found, level) =>
    level === 0
      ? Array.from({ length: k + 1 }, (_, i) => i - 1)
      : largest(found, k).map((at) => at + k * k * (level - 1) + k)
  );
}

/** The best n - 1 of all candidates, as places in them, rising; and where parents are looked up. */
export function organizeDrafts(
  levels: DraftLevels,
  n: number,
): { readonly selected: number[]; readonly parentList: number[] } {
  const selected = largest(levels.scores.flat(), n - 1).sort((a, b) => a - b);
  return { selected, parentList: levelParents(levels).slice(0, -1).flat() };
}

/** The tree of the selected candidates. */
export function buildTree(levels: DraftLevels, n: number): Proposal {
  const { selected, parentList } = organizeDrafts(levels, n);
  const all = levels.tokens.flat();
  return {
    tokens: selected.map((at) => all[at] as number),
    parents: selected.map((at) => {
      const group = Math.floor(at / levels.k);
      return group === 0 ? 0 : 1 + selected.indexOf(parentList[group] as number);
    }),
  };
}

/** First child and next sibling of each row, -1 for none. */
export function links(
  { parents }: Proposal,
): { readonly next: number[]; readonly sibling: number[] } {
  const next = Array<number>(parents.length + 1).fill(-1);
  const sibling = [...next];
  for (let row = parents.length; row > 0; row--) {
    const parent = parents[row - 1] as number;
    sibling[row] = next[parent] as number;
    next[parent] = row;
  }
  return { next, sibling };
}
