import { UsageError } from "../errors.ts";
import { gammaQuantile } from "../quantiles.ts";
import { type Arrival, arrivalSeed, type Extent, gapUniform, MAX_ARRIVALS } from "./arrival.ts";
import { type RateSchedule, whenReached } from "./schedule.ts";

export interface OpenLoop extends Extent {
  readonly schedule: RateSchedule;
  /** u32. */
  readonly seed: number;
  /**
   * Shape k of the gaps' gamma distribution, as vLLM's `--burstiness`: 1, the default, is a Poisson
   * process; below 1 requests come in bursts, above 1 evenly. The gaps' deviation is 1/sqrt(k) of
   * their mean.
   */
  readonly burstiness?: number;
}

/**
 * Requests that arrive whether or not earlier ones have ended. Gaps of mean 1 are drawn by inverting their
 * distribution. Their running sums are expected numbers of arrivals, which the inverse of the cumulative rate
 * maps to times. For k = 1 this is the Poisson process with the schedule's rate.
 *
 * Unlike in vLLM, the times are not stretched to end at requests / rate.
 *
 * @throws UsageError if more than `MAX_ARRIVALS` come before `durationMs`.
 */
export function openLoop(options: OpenLoop): Arrival[] {
  const { schedule, seed, requests = Infinity, durationMs = Infinity } = options;
  const arrivals: Arrival[] = [];
  for (const atMs of whenReached(schedule, sums(seed, requests, options.burstiness ?? 1))) {
    if (atMs >= durationMs) break;
    if (arrivals.length === MAX_ARRIVALS) {
      throw new UsageError(
        `Cannot use "--duration ${
          durationMs / 1000
        }": more than ${MAX_ARRIVALS} requests would arrive; ` +
          "give a shorter one or --num-requests",
      );
    }
    arrivals.push({ atMs, seed: arrivalSeed(seed, arrivals.length) });
  }
  return arrivals;
}

function* sums(seed: number, requests: number, shape: number): Generator<number> {
  let sum = 0;
  for (let n = 0; n < requests; n++) {
    sum += gapOf(gapUniform(seed, n), shape);
    yield sum;
  }
}

/** Quantile of the gamma distribution of that shape and mean 1. */
function gapOf(uniform: number, shape: number): number {
  if (shape === 1) return -Math.log1p(-uniform);
  return shape === Infinity ? 1 : gammaQuantile(uniform, shape) / shape;
}
