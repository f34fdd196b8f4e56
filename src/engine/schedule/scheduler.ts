import { UsageError } from "../../errors.ts";
import { checkRequest } from "./admission.ts";
import type { HostDrafter, HostProposal } from "../../draft/host_drafter.ts";
import { chain, isChain, type TierShape } from "../../speculate/round_shape.ts";
import type { CostTable } from "../../speculate/costs/table.ts";
import type { Choice, RoundContext } from "../../speculate/policy.ts";
import { NO_PROPOSAL } from "../../speculate/trees.ts";
import type { Core } from "../device/core.ts";
import { receiveMail } from "../device/event_loop.ts";
import type { EngineEvent, GenerateRequest } from "./events.ts";
import { openOutput, type Output, type Outputs } from "./output.ts";
import { openPlaces } from "./places.ts";
import { openSyncInterval, type RoundsPerSync } from "./sync_interval.ts";
import { mostLogprobs, type RequestState, tellPrefill } from "./request_state.ts";
import { roundContext, roundOutcome } from "./round_context.ts";
import type { RoundResult } from "../device/round_result.ts";
import { constrained } from "./constraining.ts";
import type { Grammars } from "../../grammar/grammars.ts";
import { openProposalGain } from "./proposal_gain.ts";
import {
  deviceSteps,
  type HostRound,
  proposalOf,
  proposedRound,
  requestDrafter,
} from "./proposing.ts";
import { elasticDraft, type ElasticReport } from "./elastic_draft.ts";
import type { PrefixCache } from "./prefix_cache.ts";
import type { ResidencyOptions } from "./residency.ts";
import { pageBudget, type PagesCore, sequencePages } from "./sequence_pages.ts";
import { newSequence, rewind } from "../device/sequence.ts";
import { NO_DRAFTS, type Speculation } from "./speculation.ts";

/** A request on its way through the scheduler. */
export interface Job {
  readonly done: boolean;
  /** Ends the request with reason "interrupt" before the next round. */
  cancel(): void;
}

/** One finished round, for statistics. */
export interface RoundSample extends Omit<RoundResult, "sequences"> {
  /** Depth of its shape. */
  readonly numSteps: number;
  /** Drafts of a sequence that it had rows for. */
  readonly drafted: number;
  /** Sequences that it brought tokens for. */
  readonly batch: number;
  /** Which they are: 0 for the first that was submitted. */
  readonly requests: readonly number[];
  /** Drafts verified for each of them, and how many of these were accepted. */
  readonly drafts: readonly number[];
  readonly accepted: readonly number[];
  /** Rounds that were submitted at once, this one among them. */
  readonly together: number;
  /** Wall time: its device time, and an equal part of what its group took beyond device times. */
  readonly ms: number;
  /** When it ended, performance.now(). */
  readonly at: number;
}

/** A chunk of a prompt: tokens `from` to `to` were stored in `ms` of wall time. */
export interface PrefillSample {
  readonly from: number;
  readonly to: number;
  readonly ms: number;
}

/** What happened since the scheduler was made. */
export interface SchedulerCounts {
  /** Running requests that gave their slot back for want of pages and were resumed later. */
  readonly preemptions: number;
  /** Steps at which a request waited although a slot was free: pages were short. */
  readonly waits: number;
  /** Draft prefills after rounds without the draft, and the time they took. */
  catchUps: number;
  catchUpMs: number;
  /** Rounds after the last token of every request in them: their group had been submitted whole. */
  wasted: number;
  /** Where the draft may leave the GPU. */
  elastic?: ElasticReport;
}

/** What the scheduler needs of a core: tests give it one without a device. */
export type SchedulerCore =
  & PagesCore
  & Pick<Core, "draft" | "ranks" | "elastic" | "setSampling" | "prefill" | "catchUp" | "rounds">;

/**
 * Runs many requests at once: continuous batching over paged keys and values. It is driven by one
 * caller, see loop.ts: a step must end before the next begins.
 */
export interface Scheduler {
  readonly counts: Readonly<SchedulerCounts>;
  /**
   * Takes a request. Its events come during `step`; the last one is "finish" or "error".
   *
   * @throws UsageError for an empty prompt or one that the context or the KV pages cannot hold.
   */
  submit(request: GenerateRequest, onEvent: (event: EngineEvent) => void): Job;
  /**
   * Admits a request, runs one prefill chunk and one group of rounds of everything that decodes.
   * False when there was nothing to do.
   */
  step(): Promise<boolean>;
  /** Ends every request with this error. */
  fail(error: Error): void;
}

export interface SchedulerOptions {
  readonly core: SchedulerCore;
  readonly cache: PrefixCache;
  readonly outputs: Outputs;
  readonly speculation: Speculation;
  /** Asked before every group of rounds; a round of its drafts is a group of its own. */
  readonly drafter?: HostDrafter | undefined;
  /** What rounds cost here, as far as it is known by now; default: nothing is. */
  readonly costs?: () => CostTable | undefined;
  /** For requests that have one. */
  readonly grammars?: Grammars | undefined;
  readonly roundsPerSync?: RoundsPerSync;
  /** Tokens of a prompt between which others are heard; default: as many as a program takes. */
  readonly chunkRows?: number;
  readonly onRound?: (sample: RoundSample) => void;
  /** Told of every chunk of a prompt. */
  readonly onPrefill?: (chunk: PrefillSample) => void;
  /** When the draft leaves the GPU, where it may. */
  readonly residency?: Partial<ResidencyOptions>;
  readonly onWarning?: (line: string) => void;
  /** As `receiveMail` has it: who comes or goes is heard before a round begins. */
  readonly mail?: (() => boolean) | undefined;
}

export function openScheduler(
  { core, cache, outputs, speculation, drafter, grammars, ...options }: SchedulerOptions,
): Scheduler {
  const { chunkRows = core.capacity.prefillRows, roundsPerSync = "auto" } = options;
  const {
    onRound = () => {},
    onPrefill = () => {},
    costs = () => undefined,
    onWarning = () => {},
  } = options;
  const { capacity } = core;
  const pages = sequencePages(core, cache);
  const places = openPlaces<RequestState>(pageBudget(pages, capacity));
  const { waiting, running } = places;
  const counts: SchedulerCounts = {
    get preemptions() {
      return places.preemptions;
    },
    get waits() {
      return places.waits;
    },
    ...{ catchUps: 0, catchUpMs: 0, wasted: 0 },
  };
  const syncInterval = openSyncInterval(roundsPerSync);
  const proposalGain = openProposalGain();
  let submitted = 0;
  /** Rounds of the last group. */
  let together = 1;
  /** The host drafted for it. */
  let proposedLast = false;
  const elastic = core.elastic && elasticDraft({
    ...{ core, memory: core.elastic, cache, onWarning },
    running: () => running.map(({ sequence }) => sequence),
  }, options.residency);
  /** Draft steps that the policy chose in this step. */
  let chosenSteps: number | undefined;
  if (elastic) counts.elastic = elastic.report;

  /** Gives slot and pages back; what is stored stays cached unless the request failed. */
  function leave(state: RequestState, { failed = false } = {}): void {
    const { sequence, request, output } = state;
    state.done = true;
    state.constraint?.close();
    // Tokens that the device chose after the request had ended are nobody's.
    sequence.ids.length = request.promptIds.length + output.tokens;
    state.drafter?.close?.(sequence.ids);
    rewind(sequence, sequence.ids.length);
    if (places.remove(state)) {
      if (!failed) pages.share(sequence);
      pages.close(sequence);
    }
  }

  function finish(state: RequestState): void {
    const ended = performance.now();
    const { started, cached = 0, prefilled = ended, sequence } = state;
    leave(state);
    const ids = sequence.ids.slice(state.request.promptIds.length);
    for (const event of state.output.end({ started, prefilled, ended, cached, ids })) {
      state.onEvent(event);
    }
  }

  function admit(): void {
    const state = places.admit();
    if (!state) return;
    const { sampling, ignoreEos } = state.request;
    const stopIds = ignoreEos ? [] : outputs.eosTokenIds;
    core.setSampling(state.sequence, sampling, stopIds, state.request.promptIds.length);
    state.cached ??= state.sequence.stored;
    tellPrefill(state);
  }

  /** The request that is admitted next, where its grammar is not open yet. */
  function unopened(): RequestState | undefined {
    return waiting.slice(0, 1).find(({ request, constraint }) => request.grammar && !constraint);
  }

  async function openGrammar(state: RequestState): Promise<void> {
    const { request: { grammar, ignoreEos } } = state;
    try {
      if (!grammars) throw new UsageError("Cannot constrain the output: there are no grammars");
      state.constraint = grammar && await grammars.open(grammar, { ignoreEos });
    } catch (error) {
      fault(state, error);
    }
  }

  async function prefillOne(): Promise<void> {
    const state = running.find(({ decoding }) => !decoding);
    if (!state) return;
    const { sequence } = state;
    await catchUp([state]);
    syncInterval.pause();
    const to = Math.min(sequence.ids.length, sequence.stored + chunkRows);
    const { constraint, request: { logprobs: told } } = state;
    const [from, began] = [sequence.stored, performance.now()];
    const token = await core.prefill(sequence, to, constraint?.mask, told);
    onPrefill({ from, to, ms: performance.now() - began });
    // A pending token that was just chosen is no part of the prompt.
    if (token === undefined) return tellPrefill(state);
    const { stored } = sequence;
    state.onEvent({ kind: "prefill", done: stored, total: stored, cached: state.cached ?? 0 });
    state.decoding = true;
    state.prefilled ??= performance.now();
    pages.share(sequence);
    const logprobs = token.logprobs && [token.logprobs];
    take(state, { ids: [token.id], accepted: 0, drafts: [], tier: undefined, logprobs });
  }

  function take(state: RequestState, taken: Parameters<Output["take"]>[0]): void {
    attempt(state, () => {
      for (const event of state.output.take(taken, state.constraint)) state.onEvent(event);
      if (state.output.finished) finish(state);
    });
  }

  /** Broken logits or drafts end this request; the others go on. */
  function attempt(state: RequestState, action: () => void): void {
    try {
      action();
    } catch (error) {
      fault(state, error);
    }
  }

  /** A mistake ends its request. */
  function fault(state: RequestState, error: unknown): void {
    if (!(error instanceof UsageError)) throw error;
    leave(state, { failed: true });
    state.onEvent({ kind: "error", error });
  }

  /** A round that the host drafts for; undefined where it drafts nothing at all. */
  function propose(states: readonly RequestState[]): HostRound | undefined {
    if (drafter === undefined || !asksHost(states)) return undefined;
    const device = deviceSteps(pick(states), states);
    const drafts = states.map((state, i) => {
      let proposal: HostProposal = NO_PROPOSAL;
      // With a draft model the request's steps are the model's.
      const most = core.draft === "none" ? state.request.numSteps : undefined;
      const of = { vocabSize: outputs.vocabSize, device: device[i] ?? 0, most };
      attempt(state, () => void (proposal = proposalOf(drafter, state, of)));
      return { state, proposal, device: of.device };
    }).filter(({ state }) => !state.done);
    const some = drafts.some(({ proposal }) => proposal.tokens.length > 0);
    if (!proposedLast) proposalGain.asked(together, some);
    proposedLast = some;
    return some ? proposedRound(drafter, drafts) : undefined;
  }

  /**
   * Rounds to submit at once, with their pages reserved: no more than the choice holds for. Rounds
   * after a change of tier are not to run at the old one.
   */
  function reserveGroup(states: readonly RequestState[], tier: TierShape, holds: number): number {
    const gain = asksHost(states) ? proposalGain.rounds : 0;
    const most = Math.min(syncInterval.pick(states.length, tier, gain), holds);
    const left = states.map(({ output }) => output.left);
    return places.reserveAhead(states, { most, numSteps: tier.depth, left });
  }

  async function round(): Promise<void> {
    const grown = places.grow();
    const proposed = propose(grown);
    const states = grown.filter(({ done }) => !done);
    if (states.length === 0) return;
    const picked = proposed ?? pickGroup(states);
    const group = constrained(states, picked, { capacity, vocabSize: outputs.vocabSize });
    // Of what a grammar forces a policy has nothing to learn.
    const chosen = group.proposals === undefined;
    together = group.count;
    const began = performance.now();
    const { shape, count } = group;
    const catchUpMs = shape.depth > 0 ? await catchUp(states) : 0;
    const sequences = states.map(({ sequence }) => sequence);
    const rounds = await core.rounds(sequences, { ...group, logprobs: mostLogprobs(states) });
    const ended = performance.now();
    if (chosen) syncInterval.learn(states.length, shape, { count, ended });
    else syncInterval.pause();
    takeGroup(states, rounds, { group, chosen, began: began + catchUpMs, ended, catchUpMs });
  }

  function contextOf(states: readonly RequestState[]): RoundContext {
    const [freePages, totalPages] = [pages.available, core.pool.total];
    const load = { waiting: waiting.length, freePages, totalPages };
    const round = { roundsPerSync: together, costs: costs(), ranks: core.ranks };
    return roundContext(states, { ...load, ...round });
  }

  /** What the device drafts, as the policy picks it. */
  function pick(states: readonly RequestState[]): Choice {
    if (core.draft === "none") return NO_DRAFTS;
    const choice = speculation.pick(contextOf(states));
    chosenSteps = choice.tier.depth;
    return elastic?.away ? NO_DRAFTS : choice;
  }

  /** Rounds as the policy picks them. */
  function pickGroup(states: readonly RequestState[]): HostRound {
    const { tier: shape, depths, verify } = pick(states);
    const count = reserveGroup(states, shape, speculation.holds(contextOf(states)));
    return { shape, count, ...depths && { depths }, ...verify && { verify } };
  }

  /** Gives each request its tokens, round by round; what comes after its end is dropped. */
  function takeGroup(
    states: readonly RequestState[],
    rounds: readonly RoundResult[],
    { group: { shape, proposals }, began, ended, chosen, catchUpMs }: {
      readonly group: HostRound;
      /** By the policy, which learns from it. */
      readonly chosen: boolean;
      /** Once the draft had caught up, which took `catchUpMs`. */
      readonly began: number;
      readonly ended: number;
      readonly catchUpMs: number;
    },
  ): void {
    const numSteps = shape.depth;
    const hostMs = (ended - began - rounds.reduce((sum, one) => sum + deviceMs(one), 0)) /
      rounds.length;
    let at = began;
    for (const [i, { sequences, ...times }] of rounds.entries()) {
      const ms = deviceMs(times) + hostMs;
      at += ms;
      const taking = sequences
        .map((result, at) => ({ result, state: states[at] as RequestState, at }))
        .filter(({ result, state }) => !state.done && result.ids.length > 0);
      if (taking.length === 0) {
        counts.wasted++;
        continue;
      }
      const accepted = taking.map(({ result }) => result.accepted);
      const batch = taking.length;
      const round = {
        ...{ tier: shape, batchSize: states.length, waiting: waiting.length },
        roundsPerSync: rounds.length,
      };
      const outcome = roundOutcome(round, taking, {
        ...{ ...times, ms },
        catchUpMs: i === 0 ? catchUpMs : 0,
      });
      if (chosen) speculation.learn(outcome);
      const tokens = taking.reduce((sum, { result }) => sum + result.ids.length, 0);
      proposalGain.brought(tokens / batch, !chosen);
      onRound({
        ...{ ...times, numSteps, drafted: shape.rows - 1, batch, accepted, ms, at },
        requests: taking.map(({ state }) => state.drafted.id),
        drafts: taking.map(({ result }) => result.drafts.length),
        together: rounds.length,
      });
      for (const { result, state, at } of taking) {
        const { drafts: { length: drafted }, accepted } = result;
        const proposal = proposals?.[at];
        const byDevice = proposal === undefined && drafted > 0;
        if (byDevice) state.drafter?.learn?.({ drafted, accepted });
        // A chain may be shorter than the round's shape.
        const tier = isChain(shape) ? chain(drafted) : shape;
        take(state, { ...result, tier, predicted: proposal?.predicted });
      }
    }
  }

  /** Milliseconds that it took. */
  async function catchUp(states: readonly RequestState[]): Promise<number> {
    // Without features there is nothing to catch up from; the lag costs acceptance only.
    if (core.draft !== "catches up" || elastic?.away) return 0;
    const behind = states.map(({ sequence }) => sequence)
      .filter(({ draftStored, stored }) => draftStored < stored);
    if (behind.length === 0) return 0;
    const began = performance.now();
    await core.catchUp(behind);
    syncInterval.pause();
    const ms = performance.now() - began;
    counts.catchUps++;
    counts.catchUpMs += ms;
    return ms;
  }

  return {
    counts,
    submit(request, onEvent) {
      checkRequest(capacity, outputs, request, { predicts: Boolean(drafter?.predicts) });
      const state: RequestState = {
        request,
        sequence: newSequence(request.promptIds),
        output: openOutput(outputs, request),
        onEvent,
        constraint: undefined,
        started: performance.now(),
        prefilled: undefined,
        decoding: false,
        cached: undefined,
        cancelled: false,
        done: false,
        drafted: { id: submitted++, depth: undefined, accepted: [], confidences: [] },
        drafter: requestDrafter(drafter, request),
      };
      places.enqueue(state);
      return {
        get done() {
          return state.done;
        },
        cancel: () => void (state.cancelled = true),
      };
    },
    async step() {
      if (options.mail) await receiveMail(options.mail);
      for (const state of [...waiting, ...running]) {
        if (state.cancelled || state.request.signal?.aborted) finish(state);
      }
      // Others may be submitted meanwhile.
      for (let state = unopened(); state; state = unopened()) await openGrammar(state);
      admit();
      if (running.length === 0) {
        if (waiting.length > 0) throw new Error("a request that fits was not admitted");
        return false;
      }
      await prefillOne();
      await eventsRead();
      await round();
      await eventsRead();
      if (elastic) {
        await elastic.step(chosenSteps, waiting.length);
        counts.elastic = elastic.report;
        chosenSteps = undefined;
      }
      return true;
    },
    fail(error) {
      for (const state of [...waiting, ...running]) {
        places.remove(state);
        state.done = true;
        state.onEvent({ kind: "error", error });
      }
    },
  };
}

/**
 * Lets who reads events in this thread read them before the device keeps it: from a queue through
 * two generators that takes some turns of the queue of microtasks.
 */
async function eventsRead(): Promise<void> {
  for (let turn = 0; turn < 8; turn++) await undefined;
}

/** Whether the host may draft for one of them. */
function asksHost(states: readonly Pick<RequestState, "drafter">[]): boolean {
  return states.some(({ drafter }) => drafter !== undefined);
}

function deviceMs({ draftMs, verifyMs, extendMs }: Omit<RoundResult, "sequences">): number {
  return draftMs + verifyMs + extendMs;
}
