import type { HostDrafter, HostProposal } from "../../../draft/host_drafter.ts";
import type { CostTable } from "../../../speculate/costs/table.ts";
import type { Decision, RoundContext } from "../../../speculate/policy.ts";
import type { DraftShape } from "../../../speculate/round_shape.ts";
import { NO_PROPOSAL } from "../../../speculate/trees.ts";
import type { Runner } from "../../device/runner.ts";
import type { ElasticDraft } from "../elastic_draft.ts";
import type { ItlLimit } from "../itl_limit.ts";
import type { OutputConfig } from "../output.ts";
import type { RunQueue } from "../run_queue.ts";
import { type RequestState, waitsForGrammar } from "../request_state.ts";
import type { Requests } from "../requests.ts";
import { NO_DRAFTS, type Speculation } from "../speculation.ts";
import type { RoundResult } from "../../device/round_result.ts";
import { outlasts, textAfter } from "./text_after.ts";
import { roundsToCome, type SyncInterval, type TextSoFar } from "../sync_interval.ts";
import { constrained } from "./constraining.ts";
import type { ProposalGain } from "./proposal_gain.ts";
import { deviceSteps, type HostRound, proposalOf, proposedRound } from "./proposing.ts";
import { roundContext } from "./round_context.ts";

/** Rounds to submit at once, and the requests in them. */
export interface PickedGroup {
  readonly states: readonly RequestState[];
  readonly round: HostRound;
  /** Whether the policy chose it and learns from it: it does not learn from tokens that a grammar forces. */
  readonly chosen: boolean;
}

/** Picks the next group of rounds for all decoding requests. */
export interface GroupPicker {
  /**
   * The next group, with its pages reserved; undefined where nothing decodes that does not wait for its grammar. Pages
   * may be short, and a drafter or a grammar that fails ends its request.
   */
  pick(): PickedGroup | undefined;
  /**
   * The group that may begin before a forward of prompts is read. Undefined if anything else must be done first: pages
   * are short, so that requests whose prompts are being stored may be preempted, states are kept at the end of prompts,
   * the draft has to catch up, or the host drafts or masks tokens.
   */
  behindPrompts(): PickedGroup | undefined;
  /**
   * The group after one that ran but whose tokens are not handled yet. Undefined if a request may end with these
   * tokens, if the policy's choice may change with them, or if anything else must be done first.
   */
  next(group: PickedGroup, rounds: readonly RoundResult[]): PickedGroup | undefined;
  /**
   * The group after one whose results are not read yet, for the requests that are not done. Undefined if it may depend
   * on more of those results than which texts end. Tokens of a request that turns out to have ended are dropped.
   */
  ahead(group: PickedGroup): PickedGroup | undefined;
  /** Draft steps that the policy chose last since the previous call; undefined if it made no choice. */
  chosenSteps(): number | undefined;
}

/** For how long a choice may be used. */
interface Validity {
  /** Number of rounds; 0: the policy must learn from the running rounds first. */
  readonly holds: number;
  /** Whether it may be used however many earlier rounds are not learned yet. */
  readonly lags: boolean;
}

interface Parts {
  readonly runner: Pick<
    Runner,
    "capacity" | "draft" | "overlaps" | "ranks" | "states"
  >;
  readonly runQueue: Pick<
    RunQueue<RequestState>,
    "waiting" | "running" | "roomy" | "grow" | "reserveAhead"
  >;
  readonly requests: Pick<Requests, "attempt">;
  readonly outputs: Pick<OutputConfig, "vocabSize" | "eosTokenIds">;
  readonly speculation: Speculation;
  readonly drafter: HostDrafter | undefined;
  readonly costs: () => CostTable | undefined;
  readonly syncInterval: SyncInterval;
  readonly itlLimit: Pick<ItlLimit, "groupMs">;
  readonly proposalGain: ProposalGain;
  readonly elastic: Pick<ElasticDraft, "away"> | undefined;
}

export function openGroupPicker(
  { runner, runQueue, requests, outputs, speculation, drafter, ...parts }: Parts,
): GroupPicker {
  const { costs, syncInterval, itlLimit, proposalGain, elastic } = parts;
  const { vocabSize, eosTokenIds } = outputs;
  /** Rounds of the last group. */
  let together = 1;
  /** Whether the host drafted for the last group. */
  let proposedLast = false;
  let chosenSteps: number | undefined;

  function contextOf(states: readonly RequestState[]): RoundContext {
    const [table, maxMs] = [costs(), itlLimit.groupMs];
    return roundContext(states, {
      roundsPerSync: together,
      costs: table,
      ranks: runner.ranks,
      maxMs,
    });
  }

  /** What the device drafts, as the policy picks it. */
  function choose(states: readonly RequestState[]): Decision {
    if (runner.draft === "none") return NO_DRAFTS;
    const choice = speculation.pick(contextOf(states));
    chosenSteps = choice.tier.depth;
    return elastic?.away ? NO_DRAFTS : choice;
  }

  /** For how long the policy's choice may be used after `unlearned` rounds that it has not learned from yet. */
  function validity(states: readonly RequestState[], unlearned: number): Validity {
    if (runner.draft === "none") return { holds: Infinity, lags: true };
    const context = contextOf(states);
    const lagging = speculation.holds(context, Infinity);
    if (lagging > 0) return { holds: lagging, lags: true };
    return { holds: speculation.holds(context, unlearned), lags: false };
  }

  /**
   * Rounds as the policy picks them, for `texts` as they are then, after `unread` rounds whose results are not read
   * yet.
   */
  function chooseRounds(
    states: readonly RequestState[],
    { valid, texts = states.map((state) => textAfter(state, [])), unread = 0 }: {
      readonly valid: Validity;
      readonly texts?: readonly TextSoFar[];
      readonly unread?: number;
    },
  ): PickedGroup["round"] {
    const { tier: shape, depths, verify } = choose(states);
    const count = reserve(states, shape, { valid, texts, unread });
    return { shape, count, ...depths && { depths }, ...verify && { verify } };
  }

  /** Rounds to submit at once, with their pages reserved: no more than the choice is valid for. */
  function reserve(
    states: readonly RequestState[],
    tier: DraftShape,
    { valid: { holds, lags }, texts, unread }: {
      readonly valid: Validity;
      readonly texts: readonly TextSoFar[];
      readonly unread: number;
    },
  ): number {
    const gain = asksHost(states) ? proposalGain.rounds : 0;
    const overlapped = runner.overlaps === true && lags && followsItself(states);
    const awaited = runQueue.waiting.length > 0;
    const toCome = roundsToCome(texts, tier.depth);
    const ahead = { gain, toCome, overlapped, awaited, longestMs: itlLimit.groupMs };
    const most = Math.min(syncInterval.pick(states.length, tier, ahead), holds);
    const left = texts.map(({ left }) => left);
    // The device stops a slot where its text ends by setting its limit to 0. Pages written before the host has read
    // that would restore the limit, and the state or window that is cached would be one past the end of the text.
    const early = runner.overlaps === true && runner.states !== undefined;
    return runQueue.reserveAhead(states, { most, numSteps: tier.depth, left, unread, early });
  }

  /** A round that verifies the host's drafts; undefined if it drafts nothing for any request. */
  function propose(states: readonly RequestState[]): HostRound | undefined {
    if (drafter === undefined || !asksHost(states)) return undefined;
    const device = deviceSteps(choose(states), states);
    const drafts = states.map((state, i) => {
      let proposal: HostProposal = NO_PROPOSAL;
      // With a draft model, the request's `numSteps` is for the model and does not limit the host's drafts.
      const most = runner.draft === "none" ? state.request.numSteps : undefined;
      const of = { vocabSize, device: device[i] ?? 0, most };
      requests.attempt(state, () => void (proposal = proposalOf(drafter, state, of)));
      return { state, proposal, device: of.device };
    }).filter(({ state }) => !state.done);
    const some = drafts.some(({ proposal }) => proposal.tokens.length > 0);
    if (!proposedLast) proposalGain.asked(together, some);
    proposedLast = some;
    return some ? proposedRound(drafter, drafts) : undefined;
  }

  /**
   * Whether nothing but the rounds of these requests decides what follows them: no request waits or prefills, pages
   * suffice, the draft cannot leave the GPU and no host drafter is asked.
   */
  function followsItself(states: readonly RequestState[]): boolean {
    const { waiting, running, roomy } = runQueue;
    const isCalm = waiting.length === 0 && running.length === states.length && roomy && !elastic;
    return isCalm && !asksHost(states);
  }

  function pick(): PickedGroup | undefined {
    while (true) {
      const grown = runQueue.grow().filter((state) => !waitsForGrammar(state));
      const proposed = propose(grown);
      const states = grown.filter(({ done }) => !done);
      if (states.length === 0) return undefined;
      const picked = proposed ?? chooseRounds(states, { valid: validity(states, 0) });
      const bounds = { capacity: runner.capacity, vocabSize, attempt: requests.attempt };
      const round = constrained(states, picked, bounds);
      // The grammar of one of them failed, and the request has ended: the others' round is picked again.
      if (states.some(({ done }) => done)) continue;
      together = round.count;
      return { states, round, chosen: round.proposals === undefined };
    }
  }

  return {
    pick,
    behindPrompts() {
      const { running, roomy } = runQueue;
      const states = running.filter(({ decoding }) => decoding);
      // A state is kept as it is at the end of a prompt: a round behind the forward would advance it.
      const isFree = roomy && !elastic && !runner.states && !asksHost(states) &&
        states.every(({ constraint }) => constraint === undefined);
      // The first token of a prompt that ends in the forward is chosen there, but not counted yet.
      const firstOf = ({ sequence: { ids, stored } }: RequestState) =>
        ids.length === stored ? 1 : 0;
      const goesOn = states.some((state) => textAfter(state, []).left > firstOf(state));
      if (!goesOn || !isFree) return undefined;
      const group = pick();
      const lags = runner.draft === "catches up" && (group?.round.shape.depth ?? 0) > 0 &&
        states.some(({ sequence: { draftStored, stored } }) => draftStored < stored);
      return lags ? undefined : group;
    },
    ahead({ states: begun, round, chosen }) {
      const states = begun.filter(({ done }) => !done);
      if (!followsItself(states) || !chosen || round.maskFor) return undefined;
      const { count, shape } = round;
      const most = count * (shape.depth + 1);
      const lasts = states.some(({ output: { left } }) => left > most);
      const goesOn = lasts && states.every((state) => outlasts(state, [], eosTokenIds));
      if (!goesOn) return undefined;
      const valid = validity(states, count);
      if (valid.holds === 0) return undefined;
      const texts = states.map((state) => {
        const { tokens, left, ends } = textAfter(state, []);
        return { tokens: tokens + most, left: left - most, ends };
      });
      const next = chooseRounds(states, { valid, texts, unread: count });
      if (next.count === 0 || mustCatchUp(shape, next.shape)) return undefined;
      together = next.count;
      return { states, round: next, chosen };
    },
    next({ states, chosen }, rounds) {
      if (!followsItself(states) || !chosen) return undefined;
      const ids = (at: number) => rounds.map(({ sequences }) => sequences[at]?.ids ?? []);
      const goesOn = states.every((state, at) => outlasts(state, ids(at), eosTokenIds));
      if (!goesOn) return undefined;
      const valid = validity(states, 0);
      // These rounds are not learned yet, so only a choice that never changes may be used.
      if (valid.holds !== Infinity) return undefined;
      runQueue.grow();
      const texts = states.map((state, at) => textAfter(state, ids(at)));
      const after = chooseRounds(states, { valid, texts });
      together = after.count;
      return { states, round: after, chosen };
    },
    chosenSteps() {
      const steps = chosenSteps;
      chosenSteps = undefined;
      return steps;
    },
  };
}

/** Whether the draft has to store what it missed in rounds of one shape before it can draft for the next. */
function mustCatchUp(shape: DraftShape, next: DraftShape): boolean {
  return shape.depth === 0 && next.depth > 0;
}

/** Whether the host may draft for one of them. */
function asksHost(states: readonly Pick<RequestState, "drafter">[]): boolean {
  return states.some(({ drafter }) => drafter !== undefined);
}
