import type { Slot } from "./slot.ts";

/** The token one ahead of a stored cell. */
export function nextToken(slot: Slot, cell: number): number {
  return slot.tokens[cell + 1] ?? slot.root;
}

/** Cells of a slot that the draft has missed. */
export interface Lag {
  readonly slot: Slot;
  readonly from: number;
  readonly to: number;
}

/** Cells the draft has missed, in groups of at most `rows`, each slot once a group. */
export function lagGroups(slots: readonly Slot[], rows: number): Lag[][] {
  const groups: Lag[][] = [];
  let room = 0;
  for (const slot of slots) {
    for (let from = slot.draftLength; from < slot.tokens.length;) {
      const group = groups.at(-1);
      const fresh = room === 0 || !group || group.at(-1)?.slot === slot;
      if (fresh) room = rows;
      const to = Math.min(slot.tokens.length, from + room);
      if (fresh || !group) groups.push([{ slot, from, to }]);
      else group.push({ slot, from, to });
      room -= to - from;
      from = to;
    }
  }
  return groups;
}
