import type { AcceptanceModel, RequestAcceptance } from "../acceptance/model.ts";

/** What comes to the machine. */
export interface IncomingRequest {
  readonly seed: number;
  readonly promptTokens: number;
  /** 1 or more. */
  readonly outputTokens: number;
  /** Prompt tokens that earlier requests have stored; default 0. */
  readonly cachedTokens?: number;
  readonly atMs: number;
}

/** A request of the simulation: what the scheduler does not know of it. */
export interface SimulatedRequest {
  /** Number of the request in the scheduler: 0 for the first that was submitted. */
  readonly id: number;
  /** Key of what is accepted of its drafts, u32. */
  readonly seed: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Prompt tokens that earlier requests had stored. */
  readonly cachedTokens: number;
  /** Time of its arrival. */
  readonly atMs: number;
  readonly acceptance: RequestAcceptance;
  /** Tokens of its output that it has received. */
  tokens: number;
  /** When it received the first of them. */
  firstMs: number | undefined;
}

export function newRequest(
  id: number,
  { cachedTokens = 0, ...coming }: IncomingRequest,
  acceptance: AcceptanceModel,
): SimulatedRequest {
  return {
    ...coming,
    id,
    cachedTokens,
    acceptance: acceptance.open(coming.seed, coming.promptTokens + 1),
    tokens: 0,
    firstMs: undefined,
  };
}

/** The ids of its prompt: no two requests begin alike, and all other tokens are 0. */
export function promptIdsOf({ id, promptTokens }: SimulatedRequest): number[] {
  const ids = Array<number>(promptTokens).fill(0);
  ids[0] = id;
  return ids;
}

/** The request whose ids these are. */
export function idOf(ids: readonly number[]): number {
  return ids[0] as number;
}
