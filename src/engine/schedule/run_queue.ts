import { PREFILL_ROWS } from "../../model/device_layout.ts";
import { roundsUseful } from "./sync_interval.ts";

/** A request as admission sees it. */
export interface QueuedRequest {
  /** Its prompt is stored, so rounds may run for it. */
  decoding: boolean;
}

/**
 * Rows of the next forward of prompts: `most`, or half of `most` (at least `PREFILL_ROWS`) while other requests decode,
 * because they wait for it.
 */
export function promptBudget(most: number, running: readonly QueuedRequest[]): number {
  const waited = Math.min(most, Math.max(PREFILL_ROWS, Math.floor(most / 2)));
  return running.some(({ decoding }) => decoding) ? waited : most;
}

/** Slots and KV pages as admission sees them: the engine's (sequence_pages.ts). */
export interface KvAllocator<Request> {
  /** Requests that may run at once. */
  readonly slots: number;
  /** Pages that no request holds. */
  readonly available: number;
  /**
   * Gives a slot, and pages for the tokens that the request has. "no slot" and "no pages" leave it
   * as it was.
   */
  open(request: Request): "opened" | "no slot" | "no pages";
  /** Whether `other` is storing pages that the request would find cached if it waited. */
  awaits(request: Request, other: Request): boolean;
  /** Pages that the request lacks for this many rounds. */
  missing(request: Request, rounds: number): number;
  /** Gives the request the pages that it lacks for this many rounds, all or none. */
  reserve(request: Request, rounds: number): boolean;
  /** Takes slot and pages back; what is stored may stay cached. */
  close(request: Request): void;
}

/** Rounds that could be submitted at once. */
export interface RoundsAhead {
  /** Most that are wanted. */
  readonly most: number;
  readonly numSteps: number;
  /** Tokens that each request may still get. */
  readonly left: readonly number[];
  /** Rounds of a submitted group whose results are not read yet; default 0. If above 0, 0 rounds may be reserved. */
  readonly unread?: number;
  /** Whether pages are reserved only while no group is unread, and then for the following groups too; default false. */
  readonly early?: boolean;
}

/**
 * Running and waiting requests, first come, first served: continuous batching over paged keys and values.
 * It knows neither tokens nor time.
 */
export interface RunQueue<Request extends QueuedRequest> {
  /** The next to be admitted first. */
  readonly waiting: readonly Request[];
  /** In the order they were admitted: the last is the youngest. */
  readonly running: readonly Request[];
  /** Running requests that were preempted because pages were short, and resumed later. */
  readonly preemptions: number;
  /** Times that a request was not admitted although a slot was free: pages were short. */
  readonly waits: number;
  enqueue(request: Request): void;
  /**
   * Admits the request that waits longest, unless a running one is storing a prefix of its prompt: if it waits for
   * that, it finds the prefix cached.
   */
  admit(): Request | undefined;
  /** Whether there are pages for one more round of every decoding request, so that `grow` would preempt none. */
  readonly roomy: boolean;
  /**
   * Reserves pages for one more round of each decoding request, preempting the youngest requests until they suffice.
   */
  grow(): Request[];
  /**
   * Rounds to submit at once for these requests, with their pages reserved: no more than surely have work to do, and
   * fewer if pages are short. `grow` has reserved the first round. Half of the available pages stay available, so that
   * reserving ahead does not keep other requests from being admitted.
   */
  reserveAhead(requests: readonly Request[], ahead: RoundsAhead): number;
  /** Forgets a request; true where it ran, so that its slot and pages are to be given back. */
  remove(request: Request): boolean;
}

/** Groups that pages are reserved for at once. */
const GROUPS_AHEAD = 4;
/** With `early`, pages are reserved at once for at least so many rounds, if there are plenty. */
const EARLY_ROUNDS = 32;
/** Share of the available pages that reserving for later groups may take. */
const PLENTY = 1 / 8;

export function openRunQueue<Request extends QueuedRequest>(
  budget: KvAllocator<Request>,
): RunQueue<Request> {
  const waiting: Request[] = [];
  const running: Request[] = [];
  /** A request waits because pages are short. */
  let short = false;
  let preemptions = 0;
  let waits = 0;

  /** Takes the slot and the pages away; the request continues later from the tokens it has. */
  function preempt(request: Request): void {
    budget.close(request);
    request.decoding = false;
    remove(running, request);
    waiting.unshift(request);
    preemptions++;
  }

  const missing = (requests: readonly Request[], rounds: number) =>
    requests.reduce((sum, request) => sum + budget.missing(request, rounds), 0);

  return {
    waiting,
    running,
    get roomy() {
      return missing(running.filter(({ decoding }) => decoding), 1) <= budget.available;
    },
    get preemptions() {
      return preemptions;
    },
    get waits() {
      return waits;
    },
    enqueue: (request) => void waiting.push(request),
    admit() {
      short = false;
      const [request] = waiting;
      // Matching the prefix cache takes milliseconds for a long prompt, so it is not tried where no slot is free.
      if (!request || running.length >= budget.slots) return undefined;
      if (running.some((other) => !other.decoding && budget.awaits(request, other))) {
        return undefined;
      }
      const opened = budget.open(request);
      if (opened === "no pages") {
        short = true;
        waits++;
      }
      if (opened !== "opened") return undefined;
      waiting.shift();
      running.push(request);
      return request;
    },
    grow() {
      for (const request of running.filter(({ decoding }) => decoding)) {
        // It may be preempted itself, here or for one before it.
        while (request.decoding && !budget.reserve(request, 1)) {
          preempt(running.at(-1) ?? request);
        }
      }
      return running.filter(({ decoding }) => decoding);
    },
    reserveAhead(requests, { most, numSteps, left, unread = 0, early = false }) {
      const admits = waiting.length > 0 && running.length < budget.slots && !short;
      const useful = roundsUseful({
        left,
        numSteps,
        prefilling: running.length > requests.length || admits,
        waiting: waiting.length > 0,
        short,
      });
      let rounds = Math.min(most, useful);
      const gives = !early || unread === 0;
      const room = gives ? budget.available / 2 : 0;
      const tooMany = () => missing(requests, unread + rounds) > room;
      while (rounds > 1 && tooMany()) rounds--;
      if (unread > 0 && tooMany()) return 0;
      if (gives && (early || unread + rounds > 1)) {
        // If there are plenty of pages, reserve for the following groups too: each write of the block table takes time.
        let more = Math.min(useful, Math.max(GROUPS_AHEAD * rounds, early ? EARLY_ROUNDS : 0));
        const plenty = budget.available * PLENTY;
        while (more > rounds && missing(requests, unread + more) > plenty) {
          more = Math.max(rounds, Math.floor(more / 2));
        }
        for (const request of requests) budget.reserve(request, unread + more);
      }
      return rounds;
    },
    remove(request) {
      remove(waiting, request);
      return remove(running, request);
    },
  };
}

/** True where it was there. */
function remove<T>(list: T[], item: T): boolean {
  const at = list.indexOf(item);
  if (at < 0) return false;
  list.splice(at, 1);
  return true;
}
