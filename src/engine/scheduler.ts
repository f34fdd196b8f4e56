import { UsageError } from "../errors.ts";
import { checkRequest, reserveRounds, reusable } from "./admission.ts";
import { reservedCells } from "./buffers.ts";
import type { Core } from "./core.ts";
import { askedSteps, decoding, type Entry, tellPrefill } from "./entry.ts";
import type { EngineEvent, GenerateRequest } from "./events.ts";
import { openOutput, type Output, type Outputs } from "./output.ts";
import { openPace, type RoundsPerSync, roundsUseful } from "./pace.ts";
import type { Slot } from "./slot.ts";
import type { RoundResult } from "./round_result.ts";
import type { Speculation } from "./speculation.ts";

/** A request on its way through the scheduler. */
export interface Job {
  readonly request: GenerateRequest;
  readonly done: boolean;
  /** Ends the request with reason "interrupt" before the next round. */
  cancel(): void;
}

/** One finished round, for statistics. */
export interface RoundSample extends Omit<RoundResult, "lanes"> {
  readonly numSteps: number;
  /** Sequences that it brought tokens for. */
  readonly batch: number;
  /** Drafts accepted by each of them. */
  readonly accepted: readonly number[];
  /** Rounds that were submitted at once, this one among them. */
  readonly together: number;
  /** Wall time: its device time, and an equal part of what its group took beyond device times. */
  readonly ms: number;
  /** When it ended, performance.now(). */
  readonly at: number;
}

/** What happened since the scheduler was made. */
export interface SchedulerCounts {
  /** Running requests that gave their pages back and were resumed later. */
  putBacks: number;
  /** Steps at which a request waited although a lane was free: pages were short. */
  waits: number;
  /** Draft prefills after rounds without the draft, and the time they took. */
  catchUps: number;
  catchUpMs: number;
  /** Rounds after the last token of every request in them: their group had been submitted whole. */
  wasted: number;
}

/** Runs many requests at once: continuous batching over paged keys and values. */
export interface Scheduler {
  readonly counts: Readonly<SchedulerCounts>;
  /**
   * Takes a request. Its events come during `step`. A `slot` given is the request's own and keeps
   * what it holds; otherwise the request gets one when its turn comes.
   *
   * @throws UsageError for an empty prompt or one that the context or the KV pages cannot hold.
   */
  submit(
    request: GenerateRequest,
    to: { readonly slot?: Slot; readonly onEvent: (event: EngineEvent) => void },
  ): Job;
  /**
   * Admits what fits, runs one prefill chunk and one group of rounds of everything that decodes.
   * False when there was nothing to do.
   */
  step(): Promise<boolean>;
}

export function openScheduler(
  { core, outputs, speculation, roundsPerSync = "auto", onRound = () => {} }: {
    readonly core: Core;
    readonly outputs: Outputs;
    readonly speculation: Speculation;
    readonly roundsPerSync?: RoundsPerSync;
    readonly onRound?: (sample: RoundSample) => void;
  },
): Scheduler {
  const counts: SchedulerCounts = { putBacks: 0, waits: 0, catchUps: 0, catchUpMs: 0, wasted: 0 };
  const pace = openPace(roundsPerSync);
  const waiting: Entry[] = [];
  /** In the order they were admitted: the last is the youngest. */
  const running: Entry[] = [];

  function leave(entry: Entry): void {
    entry.done = true;
    if (!entry.own) entry.slot?.[Symbol.dispose]();
    remove(running, entry);
    remove(waiting, entry);
  }

  function finish(entry: Entry): void {
    const ended = performance.now();
    const { started, cached, prefilled = ended } = entry;
    leave(entry);
    for (const event of entry.output.end({ started, prefilled, ended, cached })) {
      entry.onEvent(event);
    }
  }

  /** Requests wait because pages are short. */
  let short = false;

  function admit(): void {
    short = false;
    while (waiting.length > 0) {
      const entry = waiting[0] as Entry;
      const slot = entry.own ?? core.openSlot();
      if (!slot) return;
      if (!core.reserve(slot, reservedCells(core.capacity, entry.ids.length))) {
        if (!entry.own) slot[Symbol.dispose]();
        short = true;
        counts.waits++;
        return;
      }
      waiting.shift();
      running.push(entry);
      entry.slot = slot;
      const { sampling, ignoreEos } = entry.request;
      core.setSampling(slot, sampling, ignoreEos ? [] : outputs.eosTokenIds);
      entry.stored = reusable(slot, entry.ids, core.models.draft !== undefined);
      entry.cached = Math.max(entry.cached, entry.stored);
      tellPrefill(entry);
    }
  }

  async function prefillOne(): Promise<void> {
    const entry = running.find(({ ids, stored }) => stored < ids.length);
    if (!entry) return;
    const { ids, stored, slot } = entry;
    const to = Math.min(ids.length, stored + core.capacity.prefillRows);
    pace.pause();
    const token = await core.prefill(slot as Slot, ids, stored, to);
    entry.stored = to;
    tellPrefill(entry);
    if (token === undefined) return;
    entry.prefilled ??= performance.now();
    take(entry, { ids: [token], accepted: 0, drafts: [], numSteps: undefined });
  }

  function take(entry: Entry, taken: Parameters<Output["take"]>[0]): void {
    try {
      for (const event of entry.output.take(taken)) entry.onEvent(event);
      if (entry.output.finished) finish(entry);
    } catch (error) {
      // Broken logits end this request; the others go on.
      if (!(error instanceof UsageError)) throw error;
      leave(entry);
      entry.onEvent({ kind: "error", error });
    }
  }

  /** Pages for one more round of each; the youngest give theirs back until that is so. */
  function grow(): Entry[] {
    for (const entry of decoding(running)) {
      const slot = entry.slot as Slot;
      while (
        running.includes(entry) &&
        !core.reserve(slot, reservedCells(core.capacity, slot.tokens.length))
      ) putBack(running.findLast(({ own }) => !own) ?? entry);
    }
    return decoding(running);
  }

  /** Frees the entry's pages and queues it first; it goes on later from the tokens it has. */
  function putBack(entry: Entry): void {
    if (entry.own) throw new Error("a conversation cannot be put back");
    entry.slot?.[Symbol.dispose]();
    entry.slot = undefined;
    entry.ids = [...entry.request.promptIds, ...entry.output.ids];
    entry.stored = 0;
    remove(running, entry);
    waiting.unshift(entry);
    counts.putBacks++;
  }

  /** Rounds to submit at once, with their pages reserved: fewer where pages are short. */
  function reserveGroup(entries: readonly Entry[], numSteps: number): number {
    const left = entries.map(({ output }) => output.left);
    const waits = {
      prefilling: running.length > entries.length,
      waiting: waiting.length > 0,
      short,
    };
    const useful = roundsUseful({ left, numSteps, ...waits });
    // Rounds after a change of tier are not to run at the old one.
    const holds = speculation.holds(entries.length, askedSteps(entries));
    const most = Math.min(pace.pick(entries.length, numSteps), useful, holds);
    return reserveRounds(core, entries, most);
  }

  async function round(): Promise<void> {
    const entries = grow();
    if (entries.length === 0) return;
    const slots = entries.map(({ slot }) => slot as Slot);
    const asked = askedSteps(entries);
    const numSteps = core.models.draft ? speculation.pick(entries.length, asked) : 0;
    const count = reserveGroup(entries, numSteps);
    const began = performance.now();
    if (numSteps > 0) await catchUp(slots);
    const rounds = await core.rounds(slots, { numSteps, count });
    const ended = performance.now();
    pace.learn(entries.length, numSteps, { count, ended });
    takeGroup(entries, rounds, { numSteps, began, ended });
  }

  /** Gives each request its tokens, round by round; what comes after its end is dropped. */
  function takeGroup(
    entries: readonly Entry[],
    rounds: readonly RoundResult[],
    { numSteps, began, ended }: {
      readonly numSteps: number;
      readonly began: number;
      readonly ended: number;
    },
  ): void {
    const hostMs = (ended - began - rounds.reduce((sum, one) => sum + deviceMs(one), 0)) /
      rounds.length;
    let at = began;
    for (const { lanes, ...times } of rounds) {
      const ms = deviceMs(times) + hostMs;
      at += ms;
      const taking = lanes
        .map((lane, at) => ({ lane, entry: entries[at] as Entry }))
        .filter(({ lane, entry }) => !entry.done && lane.ids.length > 0);
      if (taking.length === 0) {
        counts.wasted++;
        continue;
      }
      const accepted = taking.map(({ lane }) => lane.accepted);
      const batch = taking.length;
      const asked = askedSteps(taking.map(({ entry }) => entry));
      speculation.learn(entries.length, accepted, { numSteps, ms, asked });
      onRound({ ...times, numSteps, batch, accepted, together: rounds.length, ms, at });
      for (const { lane, entry } of taking) take(entry, { ...lane, numSteps });
    }
  }

  async function catchUp(slots: readonly Slot[]): Promise<void> {
    // Where no tier decodes without the draft, nothing was kept to catch up on; a lag that a request
    // without drafting leaves costs acceptance only.
    if (!core.models.draft?.store) return;
    const behind = slots.filter(({ draftLength, tokens }) => draftLength < tokens.length);
    if (behind.length === 0) return;
    const began = performance.now();
    await core.catchUp(behind);
    pace.pause();
    counts.catchUps++;
    counts.catchUpMs += performance.now() - began;
  }

  return {
    counts,
    submit(request, { slot, onEvent }) {
      checkRequest(core.capacity, outputs, request);
      const entry: Entry = {
        request,
        output: openOutput(outputs, request),
        onEvent,
        started: performance.now(),
        own: slot,
        slot: undefined,
        ids: request.promptIds,
        stored: 0,
        cached: 0,
        prefilled: undefined,
        cancelled: false,
        done: false,
      };
      waiting.push(entry);
      return {
        request,
        get done() {
          return entry.done;
        },
        cancel: () => void (entry.cancelled = true),
      };
    },
    async step() {
      for (const entry of [...waiting, ...running]) {
        if (entry.cancelled || entry.request.signal?.aborted) finish(entry);
      }
      admit();
      if (running.length === 0) return false;
      await prefillOne();
      await round();
      return true;
    },
  };
}

function deviceMs({ draftMs, verifyMs, extendMs }: Omit<RoundResult, "lanes">): number {
  return draftMs + verifyMs + extendMs;
}

function remove<T>(list: T[], item: T): void {
  const at = list.indexOf(item);
  if (at >= 0) list.splice(at, 1);
}
