import { type EngineSizes, reservedCells } from "../../engine/device/buffers.ts";
import type { KvAllocator } from "../../engine/schedule/run_queue.ts";
import { CELLS_PER_PAGE } from "../../engine/schedule/sequence_pages.ts";
import { lengthOf, type SimulatedRequest } from "./request.ts";

/** Slots and KV pages that are only counted. */
export interface CountedPages extends KvAllocator<SimulatedRequest> {
  readonly total: number;
  /** Whether a request could run alone. */
  fits(request: Pick<SimulatedRequest, "promptTokens" | "outputTokens">): boolean;
}

/** Pages that nobody holds and that are still as `owner` left them; of one that is over, nobody's. */
interface Cached {
  readonly owner: SimulatedRequest;
  pages: number;
}

/**
 * The pages of an engine of this capacity. As in its prefix cache, what a preempted request had stored
 * stays until others need the pages, those of the longest released first and its last pages first. No
 * two requests begin alike.
 *
 * @param capacity pages: Infinity where memory is no limit.
 */
export function countedPages(capacity: EngineSizes): CountedPages {
  const { pages: total, batch: slots, contextLength } = capacity;
  const scratch = reservedCells(capacity, 0, 0);
  const perRound = reservedCells(capacity, 0, 1) - scratch;
  /** Longest released first. */
  const cached: Cached[] = [];
  let idle = 0;
  let free = total;
  let open = 0;

  const mostCells = (
    { promptTokens, outputTokens }: Pick<SimulatedRequest, "promptTokens" | "outputTokens">,
  ) => Math.min(promptTokens + outputTokens, contextLength) + scratch + perRound;

  const pagesFor = (request: SimulatedRequest, rounds: number) =>
    Math.ceil(
      Math.min(request.stored + scratch + rounds * perRound, mostCells(request)) / CELLS_PER_PAGE,
    );

  function take(request: SimulatedRequest, wanted: number): boolean {
    const missing = wanted - request.pages;
    if (missing <= 0) return true;
    if (missing > free + idle) return false;
    while (missing > free) evict(missing - free);
    free -= missing;
    request.pages += missing;
    return true;
  }

  function evict(count: number): void {
    const [oldest] = cached;
    if (oldest === undefined) throw new Error("no page is cached");
    const gone = Math.min(count, oldest.pages);
    oldest.pages -= gone;
    idle -= gone;
    free += gone;
    if (oldest.pages === 0) cached.shift();
  }

  function close(request: SimulatedRequest): void {
    open--;
    if (total === Infinity) return void (request.pages = 0);
    const whole = Math.min(request.pages, Math.floor(request.stored / CELLS_PER_PAGE));
    if (whole > 0) cached.push({ owner: request, pages: whole });
    idle += whole;
    free += request.pages - whole;
    request.pages = 0;
  }

  /** Pages of a request that comes back, as many as are still there. */
  function match(request: SimulatedRequest): number {
    const at = cached.findIndex(({ owner }) => owner === request);
    if (at < 0) return 0;
    const [{ pages } = { pages: 0 }] = cached.splice(at, 1);
    idle -= pages;
    request.pages = pages;
    return pages;
  }

  return {
    slots,
    total,
    get available() {
      return free + idle;
    },
    open(request) {
      if (open === slots) return "no slot";
      const found = match(request) * CELLS_PER_PAGE;
      const wanted = Math.ceil((lengthOf(request) + scratch + perRound) / CELLS_PER_PAGE);
      open++;
      if (!take(request, wanted)) {
        // As it was: what was found is released again, now the youngest.
        request.stored = found;
        close(request);
        request.stored = 0;
        return "no pages";
      }
      const { cachedTokens } = request;
      request.stored = Math.max(found, cachedTokens);
      request.draftStored = Math.max(Math.min(request.draftStored, found), cachedTokens);
      return "opened";
    },
    missing: (request, rounds) => Math.max(0, pagesFor(request, rounds) - request.pages),
    reserve: (request, rounds) => take(request, pagesFor(request, rounds)),
    close,
    fits: (request) => Math.ceil(mostCells(request) / CELLS_PER_PAGE) <= total,
  };
}
