import { PAGE } from "../../model/device_layout.ts";

/** One request's tokens and how many of them are stored, independent of the batch slot it runs in. */
export interface Sequence {
  /**
   * Prompt, then output. Once the prompt is stored, the last id is the pending token: chosen, but
   * its keys and values are stored by the next round only.
   */
  readonly ids: number[];
  /**
   * Leading ids that are the prompt's, if the runner has `promptKernels`; absent: the same kernels store all ids.
   */
  readonly promptTokens?: number | undefined;
  /** Leading tokens whose target keys and values are stored. */
  stored: number;
  /** Leading tokens whose draft keys and values are stored too; at most `stored`. */
  draftStored: number;
  /** Leading tokens after which its state is kept: see `CachedPrefix`. */
  branch?: number | undefined;
  /** KV pages, the first tokens' first. Each is counted once for this sequence in the page pool. */
  readonly pages: number[];
  /** Batch slot on the device; undefined while it waits. */
  slot: number | undefined;
}

/** A sequence of which nothing is stored. */
export function newSequence(ids: readonly number[] = []): Sequence {
  return { ids: [...ids], stored: 0, draftStored: 0, pages: [], slot: undefined };
}

/** Whether the kernels of rounds store the sequence's next token, and others stored its prompt. */
export function storesAnswer(
  { stored, promptTokens = Infinity }: Pick<Sequence, "stored" | "promptTokens">,
): boolean {
  return stored >= promptTokens;
}

/** @throws Error for a sequence that has none: a bug. */
export function slotOf({ slot }: Sequence): number {
  if (slot === undefined) throw new Error("the sequence has no slot");
  return slot;
}

/** Cells that the sequence with the most pages has pages for: no row of these sequences sees more. */
export function maxCells(sequences: readonly Pick<Sequence, "pages">[]): number {
  return Math.max(0, ...sequences.map(({ pages }) => pages.length)) * PAGE;
}

/** Counts no token behind the first `stored` as stored any more; `ids` stay as they are. */
export function rewind(sequence: Sequence, stored: number): void {
  sequence.stored = Math.min(sequence.stored, stored);
  sequence.draftStored = Math.min(sequence.draftStored, stored);
}
