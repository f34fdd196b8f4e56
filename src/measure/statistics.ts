// @ts-types="npm:@types/d3-array@3.2.2"
import { deviation, mean, median as middle, quantileSorted, sum as total } from "d3-array";
import { tQuantile } from "../quantiles.ts";

/** Mean and sample standard deviation (n - 1), which is null for fewer than two values. */
export interface Spread {
  readonly mean: number;
  readonly sd: number | null;
}

/**
 * The fewest values that have an interval. With fewer it is too wide to be of use: t(0.975, 1) = 12.7, t(0.975, 2) =
 * 4.3.
 */
export const FEWEST_BLOCKS = 3;

/** A ratio and its 95 % interval, which is null if there are too few blocks. */
export interface Ratio {
  readonly ratio: number;
  readonly low: number | null;
  readonly high: number | null;
}

/** Percentiles of pooled times; null if there are no times. */
export interface Percentiles {
  readonly p50: number | null;
  readonly p90: number | null;
  readonly p99: number | null;
}

/** Mean and sample standard deviation of at least one value. */
export function spread(values: readonly number[]): Spread {
  return { mean: average(values), sd: deviation(values) ?? null };
}

/** The mean; 0 for no values. */
export function average(values: readonly number[]): number {
  return mean(values) ?? 0;
}

/** The median: the middle value, or the mean of the two middle values; 0 for no values. */
export function median(values: readonly number[]): number {
  return middle(values) ?? 0;
}

/** The sum; 0 for no values. */
export function sum(values: readonly number[]): number {
  return total(values);
}

/** Standard error of the mean; undefined for fewer than two values. */
export function standardError(values: readonly number[]): number | undefined {
  const sd = deviation(values);
  return sd === undefined ? undefined : sd / Math.sqrt(values.length);
}

/**
 * 95 % interval of a mean by Student's t: mean ± t(0.975, n - 1) * sd / sqrt(n). Blocks are few
 * (5), for which the intervals of a bootstrap, BCa too, are too narrow. Undefined for fewer than
 * `FEWEST_BLOCKS` values.
 */
export function interval(values: readonly number[]): { low: number; high: number } | undefined {
  const error = standardError(values);
  if (error === undefined || values.length < FEWEST_BLOCKS) return undefined;
  const half = error === 0 ? 0 : tQuantile(0.975, values.length - 1) * error;
  const center = average(values);
  return { low: center - half, high: center + half };
}

/** `interval` of a mean that cannot be negative. `cut` is true if it reached below 0 and was cut off there. */
export function positiveInterval(
  values: readonly number[],
): { low: number; high: number; cut: boolean } | undefined {
  const around = interval(values);
  return around && { low: Math.max(0, around.low), high: around.high, cut: around.low < 0 };
}

/** Geometric mean of paired ratios, given as one natural logarithm for each block, and its interval. */
export function pairedRatio(logRatios: readonly number[]): Ratio {
  const around = interval(logRatios);
  return {
    ratio: Math.exp(average(logRatios)),
    low: around === undefined ? null : Math.exp(around.low),
    high: around === undefined ? null : Math.exp(around.high),
  };
}

/**
 * Median of paired ratios, given as one natural logarithm for each block, and its interval from the k-th
 * smallest to the k-th largest. k is the largest number for which this covers the median with 95 %, by the
 * binomial distribution. One disturbed block does not widen it. Fewer than 6 blocks give no interval.
 */
export function medianRatio(logRatios: readonly number[]): Ratio {
  const sorted = logRatios.toSorted((a, b) => a - b);
  const count = sorted.length;
  const at = (index: number) => Math.exp(sorted[index] ?? NaN);
  // Probability that one end misses the median: fewer than k of `count` fair coins show heads.
  // In logarithms: 0.5 ** count is 0 from 1075 on, and no term after it would be another number.
  let [k, missed, logTerm] = [0, 0, count * Math.log(0.5)];
  while (2 * (missed + Math.exp(logTerm)) <= 0.05) {
    missed += Math.exp(logTerm);
    logTerm += Math.log((count - k) / (k + 1));
    k++;
  }
  return {
    ratio: Math.exp(quantileSorted(sorted, 0.5) ?? NaN),
    low: k === 0 ? null : at(k - 1),
    high: k === 0 ? null : at(count - k),
  };
}

/** p50, p90, p99 with linear interpolation between ranks (R's type 7, numpy's and vLLM's default). */
export function percentiles(values: readonly number[]): Percentiles {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (p: number) => quantileSorted(sorted, p) ?? null;
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99) };
}
