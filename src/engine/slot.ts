import { PAGE } from "../model/rows_layout.ts";
import type { PagePool } from "./pages.ts";

/** One sequence's place on the device. `tokens` are those whose keys and values are stored. */
export interface Slot extends Disposable {
  readonly id: number;
  readonly tokens: number[];
  /** The newest token, generated but not stored yet. */
  root: number;
  /** Tokens whose draft keys and values are stored too. */
  draftLength: number;
  readonly pages: number[];
}

/** Cells that each of the slots has pages for at most: none of their rows sees more. */
export function mostCells(slots: readonly Slot[]): number {
  return Math.max(0, ...slots.map(({ pages }) => pages.length)) * PAGE;
}

/** Hands out the slots of a core. */
export interface Slots {
  /** A slot, or undefined when all are taken. Disposing it gives its pages back. */
  open(): Slot | undefined;
}

/** `count` slots whose pages come from `pool`. */
export function slots(count: number, pool: PagePool): Slots {
  const free = Array.from({ length: count }, (_, i) => count - 1 - i);
  return {
    open() {
      const id = free.pop();
      if (id === undefined) return undefined;
      let taken = true;
      const slot: Slot = {
        id,
        tokens: [],
        root: 0,
        draftLength: 0,
        pages: [],
        [Symbol.dispose]() {
          if (!taken) return;
          taken = false;
          pool.give(slot.pages.splice(0));
          slot.tokens.length = 0;
          free.push(id);
        },
      };
      return slot;
    },
  };
}
