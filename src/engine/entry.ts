import type { EngineEvent, GenerateRequest } from "./events.ts";
import type { Output } from "./output.ts";
import type { Slot } from "./slot.ts";
import type { AskedSteps } from "./speculation.ts";

/** A request in the scheduler: where it is and what it has got. */
export interface Entry {
  readonly request: GenerateRequest;
  readonly output: Output;
  readonly onEvent: (event: EngineEvent) => void;
  readonly started: number;
  readonly own: Slot | undefined;
  slot: Slot | undefined;
  /** Tokens to have stored before rounds begin: the prompt, and the output after a put-back. */
  ids: readonly number[];
  /** Of these, how many are stored. */
  stored: number;
  cached: number;
  prefilled: number | undefined;
  cancelled: boolean;
  done: boolean;
}

/** Those whose prompt is stored and whose first token is known. */
export function decoding(running: readonly Entry[]): Entry[] {
  return running.filter(({ ids, stored }) => stored === ids.length);
}

/** What each request asked for (`GenerateRequest.numSteps`). */
export function askedSteps(entries: readonly Entry[]): AskedSteps {
  return entries.map(({ request }) => request.numSteps);
}

/** Tells how much of the prompt is stored. */
export function tellPrefill({ onEvent, ids, stored, cached }: Entry): void {
  onEvent({ kind: "prefill", done: stored, total: ids.length, cached });
}
