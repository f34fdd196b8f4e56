import { average, median, percentiles } from "../statistics.ts";
import type { RequestRecord } from "./drive.ts";

/** Milliseconds of one request. */
export interface RequestTimes {
  /** Time to the first token, from its arrival. */
  readonly ttft: number;
  /** Time per output token after the first; null of a single token. */
  readonly tpot: number | null;
  /** Times between tokens; 0 within those that came at once. */
  readonly itl: readonly number[];
  /** End to end, from its arrival. */
  readonly e2el: number;
}

export function requestTimes({ dueMs, came, endMs, outputTokens }: RequestRecord): RequestTimes {
  const first = came[0]?.atMs ?? endMs;
  const itl = came.flatMap(({ atMs, tokens }, i) =>
    // A round brings its tokens at once: the first of them waited for it.
    Array.from({ length: i === 0 ? tokens - 1 : tokens }, (_, j) =>
      i > 0 && j === 0 ? atMs - (came[i - 1]?.atMs ?? atMs) : 0)
  );
  return {
    ttft: first - dueMs,
    tpot: outputTokens > 1 ? (endMs - first) / (outputTokens - 1) : null,
    itl,
    e2el: endMs - dueMs,
  };
}

/** Service-level objectives, milliseconds; absent: any time will do. */
export interface Slo {
  readonly ttftMs?: number;
  readonly tpotMs?: number;
}

/** vLLM's rule: every objective is met; the TPOT of a single token is 0. */
export function meets({ ttft, tpot }: RequestTimes, slo: Slo): boolean {
  return ttft <= (slo.ttftMs ?? Infinity) && (tpot ?? 0) <= (slo.tpotMs ?? Infinity);
}

/** What vLLM's and SGLang's bench_serving report of a list of times; null where it is empty. */
export interface LatencyFields {
  readonly mean: number | null;
  readonly median: number | null;
  /** Of the population, as numpy's. */
  readonly std: number | null;
  readonly p50: number | null;
  readonly p90: number | null;
  readonly p99: number | null;
}

export function latencyFields(values: readonly number[]): LatencyFields {
  const around = percentiles(values);
  if (values.length === 0) return { mean: null, median: null, std: null, ...around };
  const mean = average(values);
  const std = Math.sqrt(average(values.map((value) => (value - mean) ** 2)));
  return { mean, median: median(values), std, ...around };
}
