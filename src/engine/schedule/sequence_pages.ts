import { PAGE } from "../../model/device_layout.ts";
import { type EngineSizes, reservedCells } from "../device/buffers.ts";
import { stateSpacing } from "../device/kept_states.ts";
import type { Runner } from "../device/runner.ts";
import type { GenerateRequest } from "./events.ts";
import type { Sequence } from "../device/sequence.ts";
import { type RequestState, waitsForGrammar } from "./request_state.ts";
import type { KvAllocator } from "./run_queue.ts";
import type { PrefixCache } from "./prefix_cache.ts";

/** Gives running sequences their KV pages: cached ones, free ones, and ones that the cache evicts. */
export interface SequencePages {
  /** Pages that no sequence holds. */
  readonly available: number;
  /**
   * Gives a waiting sequence a slot, the pages of its longest cached prefix, and pages for the rest
   * of its ids. "no slot" and "no pages" leave it as it was.
   */
  open(sequence: Sequence): "opened" | "no slot" | "no pages";
  /** Whether `other` is storing pages that the sequence would find cached if it waited. */
  awaits(sequence: Sequence, other: Sequence): boolean;
  /**
   * Reserves pages for `cells` tokens in all, and evicts cached pages if too few are free; false if they do not
   * suffice.
   */
  reserve(sequence: Sequence, cells: number): boolean;
  /**
   * Adds the stored pages of the sequence to the cache, with its state where one is to be kept here, and continues with
   * the cache's pages.
   *
   * @param whole its whole prompt is stored.
   * @param beyond tokens that the device has stored behind those of the sequence, whose text ended within a group of
   * rounds; default 0.
   */
  share(sequence: Sequence, whole: boolean, beyond?: number): void;
  /** Gives slot and pages back; what the cache holds of them stays cached. */
  close(sequence: Sequence): void;
}

/** What this needs of a runner. */
export type PagesRunner = Pick<
  Runner,
  "capacity" | "pool" | "openSlot" | "closeSlot" | "reserve" | "setPages" | "states"
>;

export function sequencePages(runner: PagesRunner, cache: PrefixCache): SequencePages {
  const { capacity, pool } = runner;
  /** Tokens that a sequence had stored when its state was kept last, or those of the state that it began with. */
  const keptAt = new WeakMap<Sequence, number>();

  function reserve(sequence: Sequence, cells: number): boolean {
    const missing = Math.ceil(cells / PAGE) - sequence.pages.length;
    // Where eviction cannot free enough, nothing is evicted in vain.
    if (missing > pool.free + cache.evictable) return false;
    while (missing > pool.free && cache.evict());
    return runner.reserve(sequence, cells);
  }

  /**
   * Keeps the state of a sequence for later ones with the same prefix: when its whole prompt is stored, when the part
   * that other sequences share is stored (`branch`), or when enough tokens were stored since the last kept state.
   */
  function keepState(sequence: Sequence, whole: boolean, beyond: number): void {
    const { states } = runner;
    const { ids, promptTokens, stored, branch } = sequence;
    if (!states) return;
    const far = states.spaced && stored - (keptAt.get(sequence) ?? 0) >= stateSpacing(ids.length);
    if (!whole && stored !== branch && !far) return;
    // Without a state to keep, a place would be taken from another prefix for nothing.
    if (!states.mayHave(sequence, beyond)) return;
    const known = { ids: ids.slice(0, stored + 1), promptTokens };
    // A whole prompt's last token is computed again where the prompt is found: the state is before it.
    const tokens = whole ? stored - 1 : stored;
    const place = cache.takePlace(known, tokens - tokens % PAGE);
    if (place === undefined) return;
    keptAt.set(sequence, stored);
    const put = (length: number) => cache.putState(place, known, length);
    const saved = states.save(sequence, place, whole ? undefined : stored);
    // A device that fails is reported by those who wait for it.
    if (typeof saved === "number") put(saved);
    else saved.then(put, () => put(0));
  }

  return {
    get available() {
      return pool.free + cache.evictable;
    },
    reserve,
    open(sequence) {
      const { pages, draftStored, state, branch } = cache.match(
        sequence.ids,
        sequence.promptTokens,
      );
      sequence.pages.push(...pages);
      if (!runner.openSlot(sequence)) {
        pool.release(sequence.pages.splice(0));
        return "no slot";
      }
      sequence.stored = pages.length * PAGE;
      sequence.draftStored = draftStored;
      if (runner.states) sequence.branch = branch;
      keptAt.set(sequence, sequence.stored);
      if (!reserve(sequence, reservedCells(capacity, sequence.ids.length))) {
        runner.closeSlot(sequence);
        return "no pages";
      }
      if (state !== undefined) runner.states?.load(sequence, state, sequence.stored);
      return "opened";
    },
    awaits(sequence, other) {
      const promptOf = ({ ids, promptTokens }: Sequence) =>
        promptTokens === undefined ? ids : ids.slice(0, promptTokens);
      const [own, others] = [promptOf(sequence), promptOf(other)];
      const common = cache.common(own, others);
      // The state at the end of a prompt is kept once all of it is stored.
      const atEnd = runner.states !== undefined && others.every((id, i) => id === own[i]);
      return common > (atEnd && other.stored < others.length ? 0 : other.stored);
    },
    share(sequence, whole, beyond = 0) {
      runner.setPages(sequence, cache.insert(sequence));
      keepState(sequence, whole, beyond);
    },
    close: runner.closeSlot.bind(runner),
  };
}

/** Tokens that a page has keys and values of. */
export const CELLS_PER_PAGE: number = PAGE;

/** Cells that the request may need until it ends. */
export function cellsAtEnd(
  capacity: EngineSizes,
  { promptIds, maxTokens }: GenerateRequest,
): number {
  const tokens = Math.min(promptIds.length + maxTokens, capacity.contextLength);
  return reservedCells(capacity, tokens);
}

/** Tokens, prompt and output, that one request may have: see `checkRequest`. */
export function maxRequestTokens(capacity: EngineSizes): number {
  return Math.min(capacity.contextLength, capacity.pages * PAGE - reservedCells(capacity, 0));
}

/** A request and where its tokens are stored. */
interface Stored extends Pick<RequestState, "awaitsGrammar" | "constraint"> {
  readonly decoding: boolean;
  readonly sequence: Sequence;
  readonly request: GenerateRequest;
}

/** The engine's pages as admission sees them. No request gets more pages than it may need until its end. */
export function kvAllocator(pages: SequencePages, capacity: EngineSizes): KvAllocator<Stored> {
  // What `reservedCells` adds to a length, once and for each round.
  const scratch = reservedCells(capacity, 0, 0);
  const perRound = reservedCells(capacity, 0, 1) - scratch;
  const cells = ({ sequence, request }: Stored, rounds: number) => {
    const length = Math.min(request.promptIds.length + request.maxTokens, capacity.contextLength);
    return Math.min(sequence.stored + rounds * perRound, length + perRound) + scratch;
  };
  return {
    slots: capacity.batch,
    get available() {
      return pages.available;
    },
    open: ({ sequence }) => pages.open(sequence),
    // A request that waits for its grammar stores nothing meanwhile.
    awaits: ({ sequence }, other) =>
      !waitsForGrammar(other) && pages.awaits(sequence, other.sequence),
    missing(state, rounds) {
      const wanted = Math.ceil(cells(state, rounds) / PAGE);
      return Math.max(0, wanted - state.sequence.pages.length);
    },
    reserve: (state, rounds) => pages.reserve(state.sequence, cells(state, rounds)),
    close({ sequence, decoding }) {
      pages.share(sequence, decoding);
      pages.close(sequence);
    },
  };
}
