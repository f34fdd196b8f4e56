import type { TextSoFar } from "../../engine/schedule/sync_interval.ts";
import type { QueuedRequest } from "../../engine/schedule/run_queue.ts";
import type { AcceptanceModel, RequestAcceptance } from "../acceptance/model.ts";

/** A request in the simulator: counts where the engine has tokens. */
export interface SimulatedRequest extends QueuedRequest {
  readonly id: number;
  /** Key of what is accepted of its drafts, u32. */
  readonly seed: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Of its prompt, those that others had stored for it. */
  readonly cachedTokens: number;
  /** When it came. */
  readonly atMs: number;
  readonly acceptance: RequestAcceptance;
  /** Tokens of its output so far. Once its prompt is stored the last of them is pending. */
  tokens: number;
  /** Leading tokens whose keys and values are stored, and those whose draft's are. */
  stored: number;
  draftStored: number;
  /** KV pages it holds. */
  pages: number;
  /** Of its rounds, as policies are told: see SequenceContext. */
  depth: number | undefined;
  readonly accepted: number[];
  confidences: readonly number[];
  /** When its first token was there. */
  firstMs: number | undefined;
  done: boolean;
}

/** What comes to the machine. */
export interface Coming {
  readonly seed: number;
  readonly promptTokens: number;
  /** 1 or more. */
  readonly outputTokens: number;
  /** Of its prompt, those that others have stored before; default 0. */
  readonly cachedTokens?: number;
  readonly atMs: number;
}

export function newRequest(
  id: number,
  coming: Coming,
  acceptance: AcceptanceModel,
): SimulatedRequest {
  const { cachedTokens = 0 } = coming;
  return {
    cachedTokens,
    id,
    ...coming,
    acceptance: acceptance.open(coming.seed, coming.promptTokens + 1),
    tokens: 0,
    stored: 0,
    draftStored: 0,
    pages: 0,
    decoding: false,
    done: false,
    depth: undefined,
    accepted: [],
    confidences: [],
    firstMs: undefined,
  };
}

/** Its tokens, prompt and output. */
export function lengthOf({ promptTokens, tokens }: SimulatedRequest): number {
  return promptTokens + tokens;
}

/** Its output as the engine knows it: it may end sooner than it could. */
export function textSoFar({ outputTokens, tokens }: SimulatedRequest): TextSoFar {
  return { tokens, left: outputTokens - tokens, ends: true };
}
