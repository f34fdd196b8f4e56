import { OutOfMemory } from "../../gpu/device.ts";
import type { Runner } from "../device/runner.ts";
import type { PageMove } from "../device/elastic/paged_buffers.ts";
import { MOVED_BYTES } from "../device/elastic/leaving_buffers.ts";
import type { ElasticMemory } from "../device/elastic/elastic_memory.ts";
import type { Sequence } from "../device/sequence.ts";
import type { PrefixCache } from "./prefix_cache.ts";
import {
  moved,
  type MoveOutcome,
  observed,
  RESIDENCY,
  type Residency,
  type ResidencyOptions,
  RESIDENT,
} from "./residency.ts";

/** What became of the draft's memory; the names are those of `--json`. */
export interface ElasticReport {
  /** Where the draft is. */
  readonly draft: Residency["kind"];
  /** How often it was unloaded from the GPU, and how often it was loaded again. */
  readonly evictions: number;
  readonly reloads: number;
  /** KV pages while it is on the GPU, and while it is not. */
  readonly pages: readonly number[];
}

/** Moves a draft off the GPU where nothing is drafted and pages are short, and back. */
export interface ElasticDraft {
  /** No round may draft on the device. */
  readonly away: boolean;
  readonly report: ElasticReport;
  /**
   * Called after each step of the scheduler; moves at most one chunk.
   *
   * @param chosen draft steps that the policy chose in it; undefined where it chose none.
   * @param waiting requests.
   */
  step(chosen: number | undefined, waiting: number): Promise<void>;
}

/** The part of a runner that this needs. */
export type ElasticRunner = Pick<Runner, "pool" | "setPages" | "catchUp" | "capacity">;

interface Parts {
  readonly runner: ElasticRunner;
  readonly memory: ElasticMemory;
  readonly cache: PrefixCache;
  /** The sequences that hold pages. */
  readonly running: () => readonly Sequence[];
  readonly onWarning: (line: string) => void;
}

export function elasticDraft(
  parts: Parts,
  options: Partial<ResidencyOptions> = {},
): ElasticDraft {
  const { runner: { pool }, memory, cache } = parts;
  const when = { ...RESIDENCY, ...options };
  let state: Residency = RESIDENT;
  let task: AsyncGenerator<void, MoveOutcome> | undefined;
  let [evictions, reloads] = [0, 0];

  async function goOn(moving: AsyncGenerator<void, MoveOutcome>): Promise<void> {
    const { done, value } = await moving.next();
    if (!done) return;
    if (state.kind === "evicting") evictions++;
    else if (value === "moved") reloads++;
    task = undefined;
    state = moved(state, value);
    memory.away = state.kind !== "resident";
  }

  return {
    get away() {
      return memory.away;
    },
    get report() {
      const { fewest, most } = memory;
      return { draft: state.kind, evictions, reloads, pages: [fewest, most] };
    },
    async step(chosen, waiting) {
      if (task) return await goOn(task);
      if (memory.most === memory.fewest) return; // its memory is less than a page
      const available = pool.free + cache.evictable;
      const signals = {
        chosen,
        waiting,
        freeShare: available / pool.total,
        heldShare: (pool.total - available) / memory.fewest,
      };
      state = observed(state, signals, when);
      if (state.kind !== "evicting" && state.kind !== "loading") return;
      memory.away = true;
      task = state.kind === "evicting" ? evict(parts) : load(parts);
    },
  };
}

/** Unloads the draft, then adds KV pages in its place. It yields after each chunk. */
async function* evict(
  { runner, memory, cache, running, onWarning }: Parts,
): AsyncGenerator<void, MoveOutcome> {
  const { draft, paged, most } = memory;
  while (!await draft.copyOut()) yield;
  draft.leave();
  for (const sequence of running()) sequence.draftStored = 0;
  cache.forgetDraft();
  yield;
  try {
    while (!await paged.resize(most)) yield;
    return "moved";
  } catch (error) {
    return noMemory(error, "the memory of the draft cannot be given to KV pages", onWarning);
  } finally {
    // If memory ran out, only the pages that all buffers have are handed out.
    runner.pool.resize(paged.pages);
  }
}

/** @throws the error if it is not OutOfMemory. */
function noMemory(error: unknown, line: string, onWarning: (line: string) => void): "no memory" {
  if (!(error instanceof OutOfMemory)) throw error;
  onWarning(`${line}: ${error.message}`);
  return "no memory";
}

/** Shrinks the KV pages to their former number, then loads the draft, which catches up on what it missed. */
async function* load(parts: Parts): AsyncGenerator<void, MoveOutcome> {
  const { runner, memory: { draft, paged, fewest }, running, onWarning } = parts;
  runner.pool.resize(fewest);
  while (runner.pool.beyond !== undefined) {
    if (!vacate(parts)) {
      runner.pool.resize(paged.pages);
      return "blocked";
    }
    yield;
  }
  try {
    while (!await paged.resize(fewest)) yield;
    yield;
    await draft.allocate();
    yield;
  } catch (error) {
    runner.pool.resize(paged.pages);
    const line = "the draft cannot be brought back, nothing is drafted any more";
    return noMemory(error, line, onWarning);
  }
  while (!draft.copyIn()) yield;
  for (let chunks = chunksOf(running(), runner); chunks > 0; chunks--) {
    yield;
    await runner.catchUp(running(), 1);
  }
  return "moved";
}

/** Number of prefill chunks of what the draft has missed. */
function chunksOf(sequences: readonly Sequence[], { capacity }: Pick<ElasticRunner, "capacity">) {
  const rows = sequences.reduce((sum, { stored, draftStored }) => sum + stored - draftStored, 0);
  return Math.ceil(rows / capacity.prefillRows);
}

/**
 * Moves a chunk of the pages beyond the pool's total to lower page numbers; false if none could be moved or evicted.
 */
function vacate({ runner, memory: { paged }, cache, running }: Parts): boolean {
  const { pool } = runner;
  const most = Math.max(1, Math.floor(MOVED_BYTES / paged.pageBytes));
  const moves: PageMove[] = [];
  let evicted = false;
  for (let from = pool.beyond; from !== undefined && moves.length < most; from = pool.beyond) {
    const to = pool.take();
    if (to === undefined) {
      // The evicted page may have been `from` itself.
      if (!cache.evict()) break;
      evicted = true;
      continue;
    }
    pool.move(from, to);
    cache.move(from, to);
    moves.push({ from, to });
  }
  if (moves.length > 0) paged.move(moves);
  const places = new Map(moves.map(({ from, to }) => [from, to]));
  for (const sequence of running()) {
    runner.setPages(sequence, sequence.pages.map((page) => places.get(page) ?? page));
  }
  return evicted || moves.length > 0;
}
