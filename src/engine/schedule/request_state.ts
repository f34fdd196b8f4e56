import type { RequestDrafter } from "../../draft/host_drafter.ts";
import type { Constraint } from "../../grammar/constraint.ts";
import type { EngineEvent, GenerateRequest } from "./events.ts";
import type { Failure, OutputAccumulator } from "./output.ts";
import type { CompileProgress } from "../device/first_runs.ts";
import type { Sequence } from "../device/sequence.ts";

/** A request in the scheduler: where it is and what it has got. */
export interface RequestState {
  /** Its number among all requests, from 0. */
  readonly id: number;
  readonly request: GenerateRequest;
  readonly sequence: Sequence;
  readonly output: OutputAccumulator;
  readonly onEvent: (event: EngineEvent) => void;
  /** Constraint of the request's grammar, which is opened before the request is admitted and survives preemption. */
  constraint: Constraint | undefined;
  /** When it was submitted, first admitted, and had its first token, by the scheduler's clock. */
  readonly started: number;
  admitted: number | undefined;
  prefilled: number | undefined;
  /** Milliseconds in which the kernels of its prompt ran for the first time. */
  compileMs: number;
  /** Its ids are stored up to the pending token: rounds may begin. */
  decoding: boolean;
  /** Prompt tokens whose keys and values were cached when it was first admitted. */
  cached: number | undefined;
  cancelled: boolean;
  /** Its last tokens are not taken yet, because its grammar has not found what may follow them. */
  awaitsGrammar: boolean;
  /** What the request's own code threw where the request could not be ended at once. */
  failure: Failure | undefined;
  done: boolean;
  readonly draftHistory: DraftHistory;
  /** Drafts for it on the host. */
  readonly drafter: RequestDrafter | undefined;
}

/** What policies receive of a request's rounds. */
export interface DraftHistory {
  /** Draft steps of its last round. */
  depth: number | undefined;
  /** Drafts accepted in its last rounds, the newest last. */
  readonly accepted: number[];
}

/** What the request asked for (`GenerateRequest.numSteps`), and nothing while its grammar is slow: see `Constraint`. */
export function stepsOf(
  { request, constraint }: Pick<RequestState, "request" | "constraint">,
): number | undefined {
  return constraint?.slow ? 0 : request.numSteps;
}

/** Whether it takes no part in a round, because the others would wait for its grammar. */
export function waitsForGrammar(
  { awaitsGrammar, constraint }: Pick<RequestState, "awaitsGrammar" | "constraint">,
): boolean {
  return awaitsGrammar || constraint?.busy !== undefined;
}

/** Called with how much of the prompt is stored, and which kernels it waits for. */
export function tellPrefill(
  { onEvent, sequence, cached = 0 }: RequestState,
  compiling?: CompileProgress,
): void {
  const [done, total] = [sequence.stored, sequence.ids.length];
  onEvent({ kind: "prefill", done, total, cached, ...compiling && { compiling } });
}
