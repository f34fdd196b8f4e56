import type { Arrival } from "../../arrivals/arrival.ts";
import type { Prompt } from "../workload/prompt.ts";
import type { Workload } from "../workload/workload.ts";

/** One request of a load: when it is due and what it asks. */
export interface LoadRequest {
  /** Milliseconds from the start. */
  readonly atMs: number;
  readonly prompt: Prompt;
  /** Of a prompt of random ids. */
  readonly promptTokens: number;
  /** Most tokens of the answer; exactly so many with `ignoreEos`. */
  readonly maxTokens: number;
  readonly ignoreEos: boolean;
  /** u32. */
  readonly seed: number;
}

/** What a load is put on: the engine of this process, or a server. */
export interface RequestSender {
  /** Does all that can be done before the clock runs. @throws UsageError for what cannot be sent. */
  prepare(request: LoadRequest): PreparedRequest;
}

export interface PreparedRequest {
  /**
   * Sends it before it returns; resolves once the answer has ended.
   *
   * @param heard called with the tokens that came at that moment. The first call says that the
   * request runs and waits no more, maybe with 0 tokens; later ones with 0 say that it goes on.
   */
  send(heard: (tokens: number) => void, signal: AbortSignal): Promise<Answer>;
}

export interface Answer {
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Of the prompt, those that were stored before it came; absent: not known. */
  readonly cachedTokens?: number;
  /** Of the output ids, or of the text where those are not told. */
  readonly outputHash: string;
  /** False where the signal ended it. */
  readonly complete: boolean;
}

/** What all requests of a load have in common. */
export interface LoadWork {
  readonly workload: Workload;
  /** Of prompts of random ids, where the arrivals do not say. */
  readonly promptTokens: number;
  /** Tokens of every answer; absent: answers end by themselves. */
  readonly outputTokens?: number;
  /** Of answers that end by themselves, the most. */
  readonly maxTokens: number;
}

/** A request for each arrival, with the workload's prompts in their order; of chats the first turn. */
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

/** A workload has a number of prompts for each place of a batch, in phases as long as that asks. */
function promptsFor(workload: Workload, count: number, seed: number): readonly Prompt[] {
  if (count === 0) return [];
  const each = workload.prompts({ batch: 1, seed }).length;
  return workload.prompts({ batch: Math.ceil(count / each), seed });
}
