import type { Sequence } from "./sequence.ts";

/** Cells of a sequence that the draft has missed. */
export interface DraftLag {
  readonly sequence: Sequence;
  readonly from: number;
  readonly to: number;
}

/** Cells the draft has missed, in groups of at most `rows` cells, each sequence at most once in a group. */
export function lagGroups(sequences: readonly Sequence[], rows: number): DraftLag[][] {
  const groups: DraftLag[][] = [];
  let room = 0;
  for (const sequence of sequences) {
    for (let from = sequence.draftStored; from < sequence.stored;) {
      const group = groups.at(-1);
      const fresh = room === 0 || !group || group.at(-1)?.sequence === sequence;
      if (fresh) room = rows;
      const to = Math.min(sequence.stored, from + room);
      if (fresh || !group) groups.push([{ sequence, from, to }]);
      else group.push({ sequence, from, to });
      room -= to - from;
      from = to;
    }
  }
  return groups;
}
