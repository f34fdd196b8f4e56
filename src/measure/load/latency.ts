import type { RequestTimes } from "../request_times.ts";
import { average, median, percentiles } from "../statistics.ts";

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
