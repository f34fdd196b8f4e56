import { average, median, percentiles } from "../statistics.ts";
import type { RequestRecord } from "./drive.ts";

/** The latencies of one request in milliseconds. */
export interface RequestTimes {
  /** Time from the arrival to the first token. */
  readonly ttft: number;
  /** Time per output token after the first; null if there is a single token. */
  readonly tpot: number | null;
  /** Times between tokens; 0 between tokens that were received together. */
  readonly itl: readonly number[];
  /** Time from the arrival to the end of the answer. */
  readonly e2el: number;
}

/** The latencies of a request from its record. */
export function requestTimes(
  { dueMs, received, endMs, outputTokens }: RequestRecord,
): RequestTimes {
  const first = received[0]?.atMs ?? endMs;
  const itl = received.flatMap(({ atMs, tokens }, i) =>
    // A round brings its tokens at once: the first of them waited for it.
    Array.from({ length: i === 0 ? tokens - 1 : tokens }, (_, j) =>
      i > 0 && j === 0 ? atMs - (received[i - 1]?.atMs ?? atMs) : 0)
  );
  return {
    ttft: first - dueMs,
    tpot: outputTokens > 1 ? (endMs - first) / (outputTokens - 1) : null,
    itl,
    e2el: endMs - dueMs,
  };
}

/** Service-level objectives in milliseconds; an absent one is always met. */
export interface Slo {
  readonly ttftMs?: number;
  readonly tpotMs?: number;
}

/** Does a request meet every objective? As in vLLM the TPOT of a single token is 0. */
export function meets({ ttft, tpot }: RequestTimes, slo: Slo): boolean {
  return ttft <= (slo.ttftMs ?? Infinity) && (tpot ?? 0) <= (slo.tpotMs ?? Infinity);
}

/** The statistics that the bench_serving of vLLM and SGLang report for a list of times; null if the list is empty. */
export interface LatencyFields {
  readonly mean: number | null;
  readonly median: number | null;
  /** Standard deviation of the population, as numpy computes it. */
  readonly std: number | null;
  readonly p50: number | null;
  readonly p90: number | null;
  readonly p99: number | null;
}

/** The statistics of a list of times. */
export function latencyFields(values: readonly number[]): LatencyFields {
  const around = percentiles(values);
  if (values.length === 0) return { mean: null, median: null, std: null, ...around };
  const mean = average(values);
  const std = Math.sqrt(average(values.map((value) => (value - mean) ** 2)));
  return { mean, median: median(values), std, ...around };
}
