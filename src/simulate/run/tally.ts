import type { SimulatedRequest } from "./request.ts";

/** A round as it is recorded. */
export interface SimulatedSample {
  /** When it ended. */
  readonly tMs: number;
  readonly batch: number;
  readonly numSteps: number;
  /** Drafts verified over all sequences. */
  readonly drafts: number;
  /** Accepted drafts of each sequence. */
  readonly accepted: readonly number[];
  /** Tokens that requests took: none of what comes after their end. */
  readonly tokens: number;
  readonly ms: number;
}

/** A request that is over. */
export interface FinishedRequest {
  readonly atMs: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Milliseconds to the first token. */
  readonly ttftMs: number;
  /** Milliseconds to the last token. */
  readonly e2eMs: number;
  /** Between tokens after the first, on average; undefined of a single one. */
  readonly tpotMs: number | undefined;
}

/** Rounds of one batch size and depth. */
export interface DepthShare {
  readonly batch: number;
  readonly depth: number;
  readonly rounds: number;
  readonly tokens: number;
  readonly ms: number;
}

/** The result of a simulation. */
export interface SimulationResult {
  readonly policy: string;
  /** Simulated time. */
  readonly ms: number;
  readonly rounds: number;
  /** Tokens of all requests, also of those that did not end. */
  readonly tokens: number;
  /** Tokens a second. */
  readonly throughput: number;
  /** Rounds whose depth was not that of the round before. */
  readonly switches: number;
  /** Drafts verified a sequence and round. */
  readonly meanDepth: number;
  /** Drafts accepted a sequence and round, and one; null if there was no round. */
  readonly meanAcceptLength: number | null;
  /** Sequences a round. */
  readonly meanBatch: number;
  readonly preemptions: number;
  readonly waits: number;
  readonly catchUps: number;
  readonly catchUpMs: number;
  /** Rounds after the last token of every request in them. */
  readonly wasted: number;
  /** Shares by batch size and depth of the rounds, in the order of their first round. */
  readonly depths: readonly DepthShare[];
  readonly finished: readonly FinishedRequest[];
}

type DepthSum = { -readonly [Key in keyof DepthShare]: DepthShare[Key] };

/** What the scheduler counted. */
type Run = Pick<
  SimulationResult,
  "policy" | "ms" | "preemptions" | "waits" | "catchUps" | "catchUpMs" | "wasted"
>;

/** Counts while a simulation runs. */
export interface Tally {
  readonly rounds: number;
  readonly tokens: number;
  round(sample: SimulatedSample): void;
  /** A token that a prompt's prefill gave. */
  first(): void;
  finish(request: SimulatedRequest, ms: number): void;
  result(of: Run): SimulationResult;
}

export function openTally(): Tally {
  const finished: FinishedRequest[] = [];
  const depths = new Map<number, DepthSum>();
  let [rounds, tokens, switches, drafts, accepted, sequences] = [0, 0, 0, 0, 0, 0];
  let last: number | undefined;
  return {
    get rounds() {
      return rounds;
    },
    get tokens() {
      return tokens;
    },
    round(sample) {
      const { batch, numSteps } = sample;
      rounds++;
      tokens += sample.tokens;
      drafts += sample.drafts;
      sequences += sample.accepted.length;
      for (const each of sample.accepted) accepted += each;
      if (last !== undefined && last !== numSteps) switches++;
      last = numSteps;
      const key = batch * 256 + numSteps;
      const cell = depths.get(key) ?? { batch, depth: numSteps, rounds: 0, tokens: 0, ms: 0 };
      depths.set(key, cell);
      cell.rounds++;
      cell.tokens += sample.tokens;
      cell.ms += sample.ms;
    },
    first: () => void tokens++,
    finish({ atMs, promptTokens, outputTokens, firstMs = atMs }, ms) {
      const [ttftMs, e2eMs] = [firstMs - atMs, ms - atMs];
      const tpotMs = outputTokens > 1 ? (ms - firstMs) / (outputTokens - 1) : undefined;
      finished.push({ atMs, promptTokens, outputTokens, ttftMs, e2eMs, tpotMs });
    },
    result({ policy, ms, preemptions, waits, catchUps, catchUpMs, wasted }) {
      return {
        policy,
        ms,
        preemptions,
        waits,
        rounds,
        tokens,
        throughput: ms > 0 ? 1000 * tokens / ms : 0,
        switches,
        meanDepth: sequences > 0 ? drafts / sequences : 0,
        meanAcceptLength: sequences > 0 ? 1 + accepted / sequences : null,
        meanBatch: rounds > 0 ? sequences / rounds : 0,
        catchUps,
        catchUpMs,
        wasted,
        finished,
        depths: [...depths.values()],
      };
    },
  };
}
