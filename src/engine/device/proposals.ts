import { DRAFT_TOKENS, draftWords, PATH_CELLS } from "../../model/device_layout.ts";
import { type DraftShape, isChain } from "../../speculate/round_shape.ts";
import { depthsOf, pathTo, type Proposal } from "../../speculate/trees.ts";

/**
 * What makes a proposal impossible to verify, for people; undefined where nothing does.
 *
 * @param of.vocabSize of the target.
 */
export function proposalFault(
  proposal: Proposal,
  { depth, rows, vocabSize }: DraftShape & { readonly vocabSize: number },
): string | undefined {
  const { tokens, parents } = proposal;
  const count = tokens.length;
  if (parents.length !== count) return `it has ${count} tokens and ${parents.length} parents`;
  if (count > rows - 1) return `it has ${count} tokens, there is room for ${rows - 1}`;
  const alien = tokens.find((id) => !Number.isInteger(id) || id < 0 || id >= vocabSize);
  if (alien !== undefined) return `token id ${alien} is none of 0 to ${vocabSize - 1}`;
  const orphan = parents.findIndex((row, i) => !Number.isInteger(row) || row < 0 || row > i);
  if (orphan >= 0) return `the parent of token ${orphan} is row ${parents[orphan]}`;
  const deepest = Math.max(...depthsOf(proposal));
  if (deepest > depth) return `it has ${deepest} levels, there is room for ${depth}`;
  const off = tokens.findIndex((_, i) => cellsOffLine(proposal, i + 1) > PATH_CELLS);
  if (off < 0) return undefined;
  return `token ${off} has ${cellsOffLine(proposal, off + 1)} levels beside the first chain, ` +
    `there is room for ${PATH_CELLS}`;
}

/** Number of rows on the path to a row, itself included, whose number is not their level. */
function cellsOffLine(proposal: Proposal, row: number): number {
  return pathTo(proposal, row).filter((at, level) => at !== level).length;
}

/** What the device keeps for one slot, see kernels/lib/drafts.wgsl. */
export function packProposal({ tokens, parents }: Proposal, maxRows: number): Uint32Array {
  const words = new Uint32Array(draftWords(maxRows));
  words[0] = tokens.length;
  words.set(tokens, DRAFT_TOKENS);
  words.set(parents, DRAFT_TOKENS + maxRows - 1);
  return words;
}

/**
 * What the device drafted for one slot, as far as a round of this shape verifies it.
 *
 * @param words as packProposal makes them; chains have no parents there.
 */
export function unpackProposal(words: Uint32Array, shape: DraftShape, maxRows: number): Proposal {
  const count = Math.min(words[0] ?? 0, shape.rows - 1);
  const parents = DRAFT_TOKENS + maxRows - 1;
  return {
    tokens: [...words.subarray(DRAFT_TOKENS, DRAFT_TOKENS + count)],
    parents: isChain(shape)
      ? Array.from({ length: count }, (_, i) => i)
      : [...words.subarray(parents, parents + count)],
  };
}

/** Groups `slots` into runs of adjacent slots, as indices into `slots`: each run can be written at once. */
export function neighbours(slots: readonly number[]): number[][] {
  const order = [...slots.keys()].sort((a, b) => (slots[a] as number) - (slots[b] as number));
  const runs: number[][] = [];
  for (const at of order) {
    const run = runs.at(-1);
    const before = run && slots[run.at(-1) as number];
    if (run && before !== undefined && slots[at] === before + 1) run.push(at);
    else runs.push([at]);
  }
  return runs;
}
