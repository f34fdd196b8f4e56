import type { Arrival } from "../../arrivals/arrival.ts";
import type { Prompt } from "../workload/prompt.ts";
import type { Workload } from "../workload/workload.ts";

/** One request of a load. */
export interface LoadRequest {
  /** When the request is due, in milliseconds from the start. */
  readonly atMs: number;
  readonly prompt: Prompt;
  /** The length of the prompt if it is of random ids. */
  readonly promptTokens: number;
  /** The most tokens of the answer; exactly this number with `ignoreEos`. */
  readonly maxTokens: number;
  readonly ignoreEos: boolean;
  /** A u32. */
  readonly seed: number;
}

/** What answers the requests: the engine of this process, or a server. */
export interface RequestSender {
  /** Prepares a request before the measurement begins. @throws UsageError if it cannot be sent. */
  prepare(request: LoadRequest): PreparedRequest;
}

/** A request that is ready to be sent. */
export interface PreparedRequest {
  /**
   * Sends the request before it returns; resolves when the answer has ended.
   *
   * @param heard is called with the number of tokens received. The first call means that the request has begun to run,
   * and may have 0 tokens; a later call with 0 tokens means that the request is still running.
   */
  send(heard: (tokens: number) => void, signal: AbortSignal): Promise<Answer>;
}

/** The lengths and the hash of an answer. */
export interface Answer {
  /** Absent if a server does not count them. */
  readonly promptTokens?: number | undefined;
  readonly outputTokens: number;
  /** Prompt tokens that were in the prefix cache; absent if not known. */
  readonly cachedTokens?: number;
  /** Hash of the output ids, or of the text if the ids are not known. */
  readonly outputHash: string;
  /** False if the signal ended the answer. */
  readonly complete: boolean;
}

/** What all requests of a load share. */
export interface LoadWork {
  readonly workload: Workload;
  /** The length of prompts of random ids, if the arrivals have no lengths. */
  readonly promptTokens: number;
  /** Tokens of every answer; absent if answers end with the end token. */
  readonly outputTokens?: number;
  /** The most tokens of an answer that ends with the end token. */
  readonly maxTokens: number;
}

/**
 * One request for each arrival, with the prompts of the workload in their order. Only the first turn of a chat is sent.
 */
export function requestsOf(
  arrivals: readonly Arrival[],
  { workload, ...work }: LoadWork,
  seed: number,
): LoadRequest[] {
  const prompts = promptsFor(workload, arrivals.length, seed);
  return arrivals.map(({ atMs, promptTokens, outputTokens, seed }, n) => {
    const fixed = outputTokens ?? work.outputTokens;
    return {
      atMs,
      seed,
      prompt: prompts[n] as Prompt,
      promptTokens: promptTokens ?? work.promptTokens,
      maxTokens: fixed ?? work.maxTokens,
      ignoreEos: workload.ignoreEos || fixed !== undefined,
    };
  });
}

/** At least `count` prompts of the workload, which makes a fixed number for each slot of a batch. */
function promptsFor(workload: Workload, count: number, seed: number): readonly Prompt[] {
  if (count === 0) return [];
  const each = workload.prompts({ batch: 1, seed }).length;
  return workload.prompts({ batch: Math.ceil(count / each), seed });
}
