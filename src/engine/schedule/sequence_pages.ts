import { PAGE } from "../../model/plan/rows_layout.ts";
import { type Capacity, reservedCells } from "../device/buffers.ts";
import type { Core } from "../device/core.ts";
import type { GenerateRequest } from "./events.ts";
import type { Sequence } from "../device/sequence.ts";
import type { PrefixCache } from "./prefix_cache.ts";

/** Gives running sequences their KV pages: cached ones, free ones, and those the cache can do without. */
export interface SequencePages {
  /** Pages that nobody holds, or the cache alone. */
  readonly available: number;
  /**
   * Gives a waiting sequence a slot, the pages of its longest cached prefix, and pages for the rest
   * of its ids. "no slot" and "no pages" leave it as it was.
   */
  open(sequence: Sequence): "opened" | "no slot" | "no pages";
  /** Pages for `cells` tokens in all; evicts cached ones where free ones are too few. */
  reserve(sequence: Sequence, cells: number): boolean;
  /** Puts what the sequence has stored into the cache and goes on with the cache's pages. */
  share(sequence: Sequence): void;
  /** Gives slot and pages back; what the cache holds of them stays cached. */
  close(sequence: Sequence): void;
}

/** What this needs of a core. */
export type PagesCore = Pick<
  Core,
  "capacity" | "pool" | "openSlot" | "closeSlot" | "reserve" | "setPages"
>;

export function sequencePages(core: PagesCore, cache: PrefixCache): SequencePages {
  const { capacity, pool } = core;

  function reserve(sequence: Sequence, cells: number): boolean {
    const missing = Math.ceil(cells / PAGE) - sequence.pages.length;
    // Where eviction cannot free enough, nothing is evicted in vain.
    if (missing > pool.free + cache.evictable) return false;
    while (missing > pool.free && cache.evict());
    return core.reserve(sequence, cells);
  }

  return {
    get available() {
      return pool.free + cache.evictable;
    },
    reserve,
    open(sequence) {
      const { pages, draftStored } = cache.match(sequence.ids);
      sequence.pages.push(...pages);
      if (!core.openSlot(sequence)) {
        pool.release(sequence.pages.splice(0));
        return "no slot";
      }
      sequence.stored = pages.length * PAGE;
      sequence.draftStored = draftStored;
      if (reserve(sequence, reservedCells(capacity, sequence.ids.length))) return "opened";
      core.closeSlot(sequence);
      return "no pages";
    },
    share: (sequence) => core.setPages(sequence, cache.insert(sequence)),
    close: core.closeSlot.bind(core),
  };
}

/** Cells that the request may need until it ends. */
export function cellsAtEnd(
  capacity: Capacity,
  { promptIds, maxTokens }: GenerateRequest,
): number {
  const tokens = Math.min(promptIds.length + maxTokens, capacity.contextLength);
  return reservedCells(capacity, tokens);
}

/**
 * Gives each sequence pages for `count` rounds without the host, or for as many rounds as there are
 * pages for all; one is reserved already. Nobody needs more than it may store until its end, and half
 * of the available pages stay available: what is reserved ahead must not keep others from being
 * admitted.
 *
 * @returns the number of rounds.
 */
export function reserveRounds(
  pages: SequencePages,
  { capacity, states, count }: {
    readonly capacity: Capacity;
    readonly states: readonly { readonly sequence: Sequence; readonly request: GenerateRequest }[];
    readonly count: number;
  },
): number {
  const cells = ({ sequence, request }: typeof states[number], rounds: number) =>
    Math.min(reservedCells(capacity, sequence.stored, rounds), cellsAtEnd(capacity, request));
  const missing = (rounds: number) =>
    states.reduce((sum, state) => {
      const wanted = Math.ceil(cells(state, rounds) / PAGE);
      return sum + Math.max(0, wanted - state.sequence.pages.length);
    }, 0);
  let rounds = count;
  while (rounds > 1 && missing(rounds) > pages.available / 2) rounds--;
  if (rounds > 1) {
    for (const state of states) {
      pages.reserve(state.sequence, cells(state, rounds));
    }
  }
  return rounds;
}
