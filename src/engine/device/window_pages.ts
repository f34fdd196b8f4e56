/** Which pages of the rings of window_rings.ts hold which cells, and the windows of prefixes that are kept. */
import type { Gpu } from "../../gpu/device.ts";
import { PAGE } from "../../model/device_layout.ts";
import { type EngineSizes, tablePages } from "./buffers.ts";
import type { KeptStates } from "./kept_states.ts";
import { type PagePool, pagePool } from "./pages.ts";
import type { PromptChunk, RoundRequest } from "./runner.ts";
import { type Sequence, slotOf } from "./sequence.ts";
import type { WindowRing, WindowTable } from "./window_rings.ts";

/** Block tables of layers with windows, as rounds, prompts and prefixes need them. */
export interface WindowPages extends KeptStates {
  /** Resets the slot that the sequence was just given. */
  open(sequence: Sequence): void;
  /** Called before the sequence gives its slot back. */
  close(sequence: Sequence): void;
  /** Called before a forward of prompts with all chunks that it stores. */
  store(chunks: readonly Pick<PromptChunk, "sequence" | "to">[]): void;
  /** Called before rounds are submitted: the device may write all cells that they can reach. */
  begin(sequences: readonly Sequence[], round: Pick<RoundRequest, "shape" | "count">): void;
  /**
   * Called once their results have been added to the sequences.
   *
   * @param stopped whether the device does no further round of each sequence: rounds of it that are still submitted
   * store nothing.
   */
  end(
    sequences: readonly Sequence[],
    round: Pick<RoundRequest, "shape">,
    stopped: readonly boolean[],
  ): void;
}

/** How far the device may have written cells of a slot. */
interface Reach {
  /** Cells from this one on were not written since the slot was opened. */
  end: number;
  /** Groups of rounds that are not read. */
  unread: number;
}

export function windowPages(
  gpu: Pick<Gpu, "device">,
  tables: readonly WindowTable[],
  capacity: EngineSizes,
): WindowPages {
  const places = capacity.keptStates ?? 0;
  const sizes = { slots: capacity.batch, places, blocks: tablePages(capacity) };
  const groups = tables.map(({ table: { buffer, offset = 0 }, ...ring }) =>
    new RingPages(ring, sizes, (slot, first, pages) => {
      if (pages.length === 0) return; // Deno 2.9.6 panics on an empty write
      const at = offset + 4 * (slot * sizes.blocks + first);
      gpu.device.queue.writeBuffer(buffer, at, Uint32Array.from(pages));
    })
  );
  const reaches = Array.from({ length: capacity.batch }, (): Reach => ({ end: 0, unread: 0 }));
  const reachOf = (sequence: Sequence) => reaches[slotOf(sequence)] as Reach;
  return {
    count: places,
    spaced: false,
    saving: undefined,
    mayHave: () => true,
    open(sequence) {
      Object.assign(reachOf(sequence), { end: 0, unread: 0 });
      for (const group of groups) group.open(slotOf(sequence));
    },
    close(sequence) {
      for (const group of groups) group.close(slotOf(sequence));
    },
    store(chunks) {
      for (const group of groups) {
        group.store(
          chunks.map(({ sequence, to }) => ({ slot: slotOf(sequence), from: sequence.stored, to })),
        );
      }
      for (const { sequence, to } of chunks) {
        const reach = reachOf(sequence);
        reach.end = Math.max(reach.end, to);
      }
    },
    begin(sequences, { shape: { depth, rows }, count }) {
      for (const sequence of sequences) {
        const reach = reachOf(sequence);
        const from = reach.unread > 0 ? reach.end : sequence.stored;
        reach.end = Math.max(reach.end, from + count * (depth + 1) + rows);
        reach.unread++;
      }
    },
    end(sequences, { shape: { rows } }, stopped) {
      for (const [i, sequence] of sequences.entries()) {
        if (sequence.slot === undefined) continue;
        const reach = reachOf(sequence);
        reach.unread = stopped[i] ? 0 : Math.max(0, reach.unread - 1);
        // The last of the rounds began at most at the token before.
        if (reach.unread === 0) reach.end = sequence.stored - 1 + rows;
      }
    },
    save(sequence, place, promptTokens) {
      // The same prompt is found up to its last token, which is computed again.
      const tokens = promptTokens ?? Math.min(sequence.stored, sequence.ids.length - 1) - 1;
      const length = tokens - tokens % PAGE;
      const { end } = reachOf(sequence);
      const saved = groups.every((group) => group.save(slotOf(sequence), place, { length, end }));
      return saved ? length : 0;
    },
    load(sequence, place, length) {
      reachOf(sequence).end = length;
      for (const group of groups) group.load(slotOf(sequence), place, length);
    },
  };
}

/** A page that belongs to a kept prefix too: it is read and not written. */
interface SharedPage {
  readonly block: number;
  readonly page: number;
}

interface SlotPages {
  /** Page of each block of the context. */
  readonly table: Uint32Array;
  /** The slot's own pages: blocks to come are stored in page (block mod `slotPages`) of these. */
  readonly ring: number[];
  shared: SharedPage[];
  /** First block whose cells are stored: of a prefix that was loaded there are those of the window alone. */
  begins: number;
}

/**
 * Pages of the layers of one window. Each slot always has `slotPages` of its own, and each kept prefix at most
 * `keptPages`. So the pages that a forward of prompts takes in addition are free whenever one begins.
 */
class RingPages {
  readonly #ring: WindowRing;
  readonly #write: (slot: number, first: number, pages: readonly number[]) => void;
  readonly #pool: PagePool;
  readonly #slots: readonly SlotPages[];
  readonly #places: number[][];

  /** @param write puts pages into the block table of a slot, from block `first` on. */
  constructor(
    ring: WindowRing,
    sizes: { readonly slots: number; readonly places: number; readonly blocks: number },
    write: (slot: number, first: number, pages: readonly number[]) => void,
  ) {
    this.#ring = ring;
    this.#write = write;
    this.#pool = pagePool(ring.pages);
    this.#slots = Array.from({ length: sizes.slots }, () => ({
      table: new Uint32Array(sizes.blocks),
      ring: Array.from({ length: ring.slotPages }, () => this.#take()),
      shared: [],
      begins: 0,
    }));
    this.#places = Array.from({ length: sizes.places }, () => []);
  }

  open(slot: number): void {
    this.#slotAt(slot).begins = 0;
    this.#goOn(slot, 0);
  }

  close(slot: number): void {
    this.#release(this.#slotAt(slot), Infinity);
  }

  /**
   * Gives pages to the blocks that chunks are stored in: the ring's page, or, if that holds cells that the chunk still
   * reads, another page, which takes its place in the ring.
   */
  store(
    chunks: readonly { readonly slot: number; readonly from: number; readonly to: number }[],
  ): void {
    const { slotPages, keptPages } = this.#ring;
    const left: number[] = [];
    for (const { slot, from, to } of chunks) {
      const slotAt = this.#slotAt(slot);
      const { table, ring } = slotAt;
      const seen = this.#firstSeen(from);
      const first = Math.floor(from / PAGE);
      this.#release(slotAt, first - keptPages); // The prefix may be kept.
      const end = Math.ceil(to / PAGE);
      for (let block = first; block < end; block++) {
        const at = block % slotPages;
        const page = ring[at] as number;
        if (block - slotPages >= seen && table[block - slotPages] === page) {
          left.push(page);
          ring[at] = this.#take();
        }
        table[block] = ring[at] as number;
      }
      this.#goOn(slot, end, first);
    }
    // Only work that is submitted later may write them.
    this.#pool.release(left);
  }

  /**
   * Keeps the pages of the window before cell `length`, and the slot continues in others. False if too few are free, or
   * if the slot's pages do not hold that window any more.
   *
   * @param of.end cells from this one on were not written.
   */
  save(
    slot: number,
    place: number,
    { length, end }: {
      readonly length: number;
      readonly end: number;
    },
  ): boolean {
    const { slotPages, keptPages, promptPages } = this.#ring;
    const slotAt = this.#slotAt(slot);
    const { table, ring } = slotAt;
    this.#pool.release((this.#places[place] as number[]).splice(0));
    const last = length / PAGE;
    const first = Math.max(0, last - keptPages);
    this.#release(slotAt, first);
    const there = last > 0 && first >= slotAt.begins && (first + slotPages) * PAGE >= end;
    if (!there) return false;
    const shared = new Set(slotAt.shared.map(({ block }) => block));
    const blocks = Array.from({ length: last - first }, (_, i) => first + i);
    const own = blocks.filter((block) => table[block] === ring[block % slotPages]);
    if (!blocks.every((block) => own.includes(block) || shared.has(block))) return false;
    if (this.#pool.free - own.length < promptPages) return false;
    const kept = blocks.map((block) => table[block] as number);
    this.#pool.retain(kept);
    for (const block of own) {
      slotAt.shared.push({ block, page: table[block] as number });
      ring[block % slotPages] = this.#take();
    }
    this.#places[place] = kept;
    // The prefix that the slot began with may be longer: its other pages stay.
    this.#goOn(slot, Math.max(last, ...slotAt.shared.map(({ block }) => block + 1)));
    return true;
  }

  /** Makes an empty slot begin with the window that is kept at a place. */
  load(slot: number, place: number, length: number): void {
    const slotAt = this.#slotAt(slot);
    const { table, shared } = slotAt;
    const pages = this.#places[place] as number[];
    const first = length / PAGE - pages.length;
    slotAt.begins = first;
    this.#pool.retain(pages);
    for (const [i, page] of pages.entries()) {
      table[first + i] = page;
      shared.push({ block: first + i, page });
    }
    this.#write(slot, first, pages);
  }

  /** Block of the first cell that a row at position `from` sees. */
  #firstSeen(from: number): number {
    return Math.floor(Math.max(0, from + 1 - this.#ring.window) / PAGE);
  }

  /** Stores the blocks from `first` on in the ring. @param changed first block whose page is written to the device. */
  #goOn(slot: number, first: number, changed = first): void {
    const { table, ring } = this.#slotAt(slot);
    for (let block = first; block < table.length; block++) {
      table[block] = ring[block % ring.length] as number;
    }
    if (changed < table.length) this.#write(slot, changed, [...table.subarray(changed)]);
  }

  /** Ends the slot's holds of shared pages before block `seen`. */
  #release(slotAt: SlotPages, seen: number): void {
    const { shared } = slotAt;
    this.#pool.release(shared.filter(({ block }) => block < seen).map(({ page }) => page));
    slotAt.shared = shared.filter(({ block }) => block >= seen);
  }

  #take(): number {
    const page = this.#pool.take();
    if (page === undefined) throw new Error(`no page is left for windows of ${this.#ring.window}`);
    return page;
  }

  #slotAt(slot: number): SlotPages {
    return this.#slots[slot] as SlotPages;
  }
}
