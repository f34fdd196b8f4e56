import type { Decision, SequenceOutcome } from "../../speculate/policy.ts";
import { RECENT_ROUNDS } from "../../speculate/policy.ts";
import { acceptedFrom, confidenceAt, type Progress } from "../acceptance/model.ts";
import { allocate } from "./allocation.ts";
import type { SimulatedRequest } from "./request.ts";

/** How a round's drafts come about. */
export interface Drafting {
  readonly choice: Decision;
  /** When the round begins. */
  readonly now: Progress;
  /** Noise of the draft's confidence (`confidenceAt`); undefined: it tells none. */
  readonly confidenceNoise: number | undefined;
}

/** What a round brings, before its tokens are taken. */
export interface Drafted {
  /** Drafts verified over all sequences. */
  readonly drafts: number;
  readonly sequences: readonly SequenceOutcome[];
}

/** Drafts for these requests and accepts. Requests have it in their later contexts. */
export function draftRound(
  requests: readonly SimulatedRequest[],
  { choice, now, confidenceNoise }: Drafting,
): Drafted {
  const { tier: { depth }, depths: given, verify } = choice;
  const confidences = confidenceNoise === undefined || depth === 0
    ? undefined
    : requests.map((request) => confidencesOf(request, { depth, now, sigma: confidenceNoise }));
  const depths = given ?? (verify && confidences && allocate(confidences, verify));
  let drafts = 0;
  const sequences = requests.map((request, i): SequenceOutcome => {
    const verified = depths?.[i] ?? depth;
    drafts += verified;
    const { seed, stored, acceptance } = request;
    const accepted = acceptedFrom(stored + 1, verified, { seed, request: acceptance, now });
    request.depth = verified;
    request.accepted.push(accepted);
    if (request.accepted.length > RECENT_ROUNDS) request.accepted.shift();
    request.confidences = confidences?.[i] ?? NONE;
    return {
      id: request.id,
      asked: undefined,
      depth: verified,
      accepted,
      confidences: request.confidences,
      position: request.stored,
    };
  });
  return { drafts, sequences };
}

const NONE: readonly number[] = [];

function confidencesOf(
  { seed, stored, acceptance }: SimulatedRequest,
  { depth, now, sigma }: {
    readonly depth: number;
    readonly now: Progress;
    readonly sigma: number;
  },
): number[] {
  return Array.from({ length: depth }, (_, step) => {
    const position = stored + 1 + step;
    const chance = acceptance.told?.(position, step, now) ?? acceptance.chance(position, step, now);
    return confidenceAt({ seed, position, chance, sigma });
  });
}
