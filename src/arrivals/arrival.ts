// When requests arrive. A list of arrivals is plain data, drawn once and given to every policy and
// every engine or simulator that is compared (common random numbers): the n-th arrival of a seed is
// the same whatever was drawn before it, since its noise is a hash of (seed, n, purpose).
//
//     openLoop({ schedule: constantRate(4), seed: 1, requests: 200 })   Poisson, 4 a second
//     openLoop({ schedule, seed, burstiness: 0.5, durationMs: 60_000 }) bursty, rates over time
//     readTrace(text, { path, seed, timeScale: 2, requests: 200 })      Azure's CSV
//     closedLoop({ seed: 1, requests: 200 })                            all wait from the start
//
// The runner decides how many requests are in flight: an open loop has no limit, a closed loop starts
// the next request when one of `concurrency` ends.
import { hash32 } from "../speculate/noise.ts";

/** One request to come. */
export interface Arrival {
  /** From the start of the run, milliseconds, not falling within a list. */
  readonly atMs: number;
  /** Tokens of its prompt; absent: the workload's prompts decide. */
  readonly promptTokens?: number;
  /** Tokens of its answer; absent: as for every request of the run. */
  readonly outputTokens?: number;
  /** Seed of everything that is drawn for the request (prompt, sampling, acceptance), u32. */
  readonly seed: number;
}

/** Where a list of arrivals ends: at the limit that is reached first. At least one is given. */
export interface Extent {
  /** Most arrivals. */
  readonly requests?: number;
  /** No arrival is at or after this. */
  readonly durationMs?: number;
}

/** The most arrivals of a list. */
export const MAX_ARRIVALS = 1_000_000;

/** What the n-th arrival draws by chance. */
const GAP = 0;
const SEED = 1;

/** The seed of the n-th arrival, n from 0. */
export function arrivalSeed(seed: number, n: number): number {
  return hash32(seed, n, SEED);
}

/** A number within (0, 1) for the gap before the n-th arrival; neither end is reached. */
export function gapUniform(seed: number, n: number): number {
  return (hash32(seed, n, GAP) + 0.5) / 2 ** 32;
}

/** Requests that all wait from the start; the runner keeps a number of them in flight. */
export function closedLoop(
  { seed, requests }: { readonly seed: number; readonly requests: number },
): Arrival[] {
  return Array.from({ length: requests }, (_, n) => ({ atMs: 0, seed: arrivalSeed(seed, n) }));
}
