import type { EngineEvent, GenerateRequest } from "./events.ts";
import type { Output } from "./output.ts";
import type { Sequence } from "../device/sequence.ts";
import type { AskedSteps } from "./speculation.ts";

/** A request in the scheduler: where it is and what it has got. */
export interface RequestState {
  readonly request: GenerateRequest;
  readonly sequence: Sequence;
  readonly output: Output;
  readonly onEvent: (event: EngineEvent) => void;
  /** When it was submitted and when its first token was there, performance.now(). */
  readonly started: number;
  prefilled: number | undefined;
  /** Its ids are stored up to the pending token: rounds may begin. */
  decoding: boolean;
  /** Prompt tokens whose keys and values were cached when it was first admitted. */
  cached: number | undefined;
  cancelled: boolean;
  done: boolean;
}

/** What each request asked for (`GenerateRequest.numSteps`). */
export function askedSteps(states: readonly Pick<RequestState, "request">[]): AskedSteps {
  return states.map(({ request }) => request.numSteps);
}

/** Tells how much of the prompt is stored. */
export function tellPrefill({ onEvent, sequence, cached = 0 }: RequestState): void {
  onEvent({ kind: "prefill", done: sequence.stored, total: sequence.ids.length, cached });
}
