import { chain, type DraftShape, isChain } from "../../../speculate/round_shape.ts";
import type { RoundResult, SequenceResult } from "../../device/round_result.ts";
import type { RequestState } from "../request_state.ts";
import type { Requests } from "../requests.ts";
import type { Speculation } from "../speculation.ts";
import type { PickedGroup } from "./group_picker.ts";
import type { ProposalGain } from "./proposal_gain.ts";
import { roundOutcome } from "./round_context.ts";
import type { RoundSample } from "./round_sample.ts";

/** A group that ran. */
export interface RanGroup extends PickedGroup {
  /** Results in the order in which the rounds ran; their sequences are those of `states`. */
  readonly rounds: readonly RoundResult[];
  /** When its rounds began, by the scheduler's clock: after the draft's catch-up, which took `catchUpMs`. */
  readonly began: number;
  readonly ended: number;
  readonly catchUpMs: number;
}

interface Parts {
  readonly requests: Pick<Requests, "take" | "attempt">;
  readonly speculation: Speculation;
  readonly proposalGain: ProposalGain;
  readonly onRound: (sample: RoundSample) => void;
}

/** The result of a round for one request. */
interface Taking {
  readonly state: RequestState;
  readonly result: SequenceResult;
  /** Its place in the batch. */
  readonly at: number;
}

/**
 * Gives each request its tokens, round by round; what comes after its end is dropped. The policy
 * learns from the rounds that it chose.
 *
 * @returns how many rounds came after the last token of every request in them.
 */
export function takeGroup(parts: Parts, ran: RanGroup): number {
  const { requests: { take, attempt }, speculation, proposalGain, onRound } = parts;
  const { states, round: { shape, proposals }, rounds, chosen, catchUpMs } = ran;
  const hostMs = hostMsOf(ran);
  let [at, wasted] = [ran.began, 0];
  for (const [i, { sequences, ...times }] of rounds.entries()) {
    const ms = deviceMs(times) + hostMs;
    at += ms;
    const taking = takingOf(states, sequences);
    if (taking.length === 0) {
      wasted++;
      continue;
    }
    if (chosen) {
      const round = {
        tier: shape,
        batchSize: states.length,
        roundsPerSync: rounds.length,
        drafts: draftsOf(ran.round, sequences),
        ms: { round: ms, catchUp: i === 0 ? catchUpMs : 0 },
      };
      speculation.learn(roundOutcome(round, taking));
    }
    const tokens = taking.reduce((sum, { result }) => sum + result.ids.length, 0);
    proposalGain.brought(tokens / taking.length, !chosen);
    onRound({ ...times, ...countsOf(shape, taking), together: rounds.length, ms, at });
    for (const { result, state, at } of taking) {
      const proposal = proposals?.[at];
      const { drafts: { length: drafted }, accepted } = result;
      const byDevice = proposal === undefined && drafted > 0;
      if (byDevice) attempt(state, () => state.drafter?.learn?.({ drafted, accepted }));
      // A chain may be shorter than the round's shape.
      const tier = isChain(shape) && drafted < shape.depth ? chain(drafted) : shape;
      take(state, { ...result, tier, predicted: proposal?.predicted });
    }
  }
  return wasted;
}

/** Drafts that a round verified over all its requests. Rounds with masks or penalties ignore the budget `verify`. */
function draftsOf(
  { shape, depths, verify }: PickedGroup["round"],
  sequences: readonly SequenceResult[],
): number {
  const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);
  const most = depths ? sum(depths) : sequences.length * shape.depth;
  const seen = sum(sequences.map(({ drafts }) => drafts.length));
  return verify ? Math.min(most, Math.max(verify.drafts, seen)) : most;
}

/** The requests that continue, of those that the round returned tokens for. */
function takingOf(
  states: readonly RequestState[],
  sequences: readonly SequenceResult[],
): readonly Taking[] {
  return sequences
    .map((result, at) => ({ result, state: states[at] as RequestState, at }))
    .filter(({ result, state }) => !state.done && result.ids.length > 0);
}

function countsOf(
  shape: DraftShape,
  taking: readonly Taking[],
): Pick<RoundSample, "numSteps" | "batch" | "requests" | "drafts" | "accepted"> {
  return {
    numSteps: shape.depth,
    batch: taking.length,
    requests: taking.map(({ state }) => state.id),
    drafts: taking.map(({ result }) => result.drafts.length),
    accepted: taking.map(({ result }) => result.accepted),
  };
}

/** Milliseconds of each round beyond its device time: an equal share of what the group took beyond device times. */
function hostMsOf({ rounds, began, ended }: RanGroup): number {
  return (ended - began - rounds.reduce((sum, one) => sum + deviceMs(one), 0)) / rounds.length;
}

function deviceMs({ draftMs, verifyMs, extendMs }: Omit<RoundResult, "sequences">): number {
  return draftMs + verifyMs + extendMs;
}
