import { NOT_A_TOKEN } from "../../../../kernels/lib/rows.ts";
import type { RequestState } from "../request_state.ts";
import type { TextSoFar } from "../sync_interval.ts";

type Text = Pick<RequestState, "output" | "request">;

/** A request's text once it has taken the tokens of these rounds. */
export function textAfter(
  { output: { tokens, left }, request: { ignoreEos } }: Text,
  rounds: readonly (readonly number[])[],
): TextSoFar {
  const taken = rounds.reduce((sum, ids) => sum + ids.length, 0);
  return { tokens: tokens + taken, left: left - taken, ends: !ignoreEos };
}

/** Whether a request certainly continues after these rounds: none of their text can stop it. */
export function outlasts(
  state: Text & Pick<RequestState, "done" | "cancelled" | "constraint">,
  rounds: readonly (readonly number[])[],
  eosTokenIds: readonly number[],
): boolean {
  const { done, cancelled, constraint, request: { ignoreEos, signal, stop } } = state;
  if (done || cancelled || signal?.aborted || constraint || stop.length > 0) return false;
  const ends = (id: number) => id === NOT_A_TOKEN || (!ignoreEos && eosTokenIds.includes(id));
  return textAfter(state, rounds).left > 0 &&
    rounds.every((ids) => ids.length > 0 && !ids.some(ends));
}
