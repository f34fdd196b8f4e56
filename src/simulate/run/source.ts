import { type Arrival, arrivalSeed } from "../../arrivals/arrival.ts";
import type { IncomingRequest } from "./request.ts";

/** Where requests come from. */
export interface Source {
  /**
   * Requests that have come by now.
   *
   * @param inFlight requests that wait or run.
   */
  due(ms: number, inFlight: number): readonly IncomingRequest[];
  /** By how many the requests in flight are too many now; the youngest ones leave. */
  surplus(ms: number, inFlight: number): number;
  /** Whether `due` or `surplus` has something by now. */
  pending(ms: number, inFlight: number): boolean;
  /** When the next one comes if none is in flight; undefined: none ever does. */
  next(ms: number): number | undefined;
  /** Whether prompts are already stored when requests arrive, so that only rounds take time. */
  readonly stored: boolean;
}

/** Lengths in tokens of requests whose arrivals have none. */
export interface Lengths {
  readonly promptTokens: number;
  readonly outputTokens: number;
}

/** Requests come whether or not those before them have ended. */
export function openSource(arrivals: readonly Arrival[], lengths: Lengths): Source {
  let at = 0;
  return {
    stored: false,
    surplus: () => 0,
    pending: (ms) => (arrivals[at]?.atMs ?? Infinity) <= ms,
    next: () => arrivals[at]?.atMs,
    due(ms) {
      const from = at;
      while ((arrivals[at]?.atMs ?? Infinity) <= ms) at++;
      return arrivals.slice(from, at).map((arrival) => ({ ...lengths, ...arrival }));
    },
  };
}

/** `concurrency` requests are in flight, a new one for each that ends, while the list lasts. */
export function closedSource(
  arrivals: readonly Arrival[],
  concurrency: number,
  lengths: Lengths,
): Source {
  let at = 0;
  return {
    stored: false,
    surplus: () => 0,
    pending: (_, inFlight) => at < arrivals.length && inFlight < concurrency,
    next: (ms) => at < arrivals.length ? ms : undefined,
    due(ms, inFlight) {
      const from = at;
      at = Math.min(arrivals.length, at + Math.max(0, concurrency - inFlight));
      return arrivals.slice(from, at).map((arrival) => ({ ...lengths, ...arrival, atMs: ms }));
    },
  };
}

/** A source that always has as many requests as a function of time returns, with their prompts stored. */
export function batchSource(
  batchAt: (ms: number) => number,
  { seed, ...lengths }: Lengths & { readonly seed: number },
): Source {
  let count = 0;
  return {
    stored: true,
    surplus: (ms, inFlight) => Math.max(0, inFlight - batchAt(ms)),
    pending: (ms, inFlight) => inFlight !== batchAt(ms),
    next: (ms) => ms,
    due(ms, inFlight) {
      const missing = Math.max(0, batchAt(ms) - inFlight);
      return Array.from(
        { length: missing },
        () => ({ ...lengths, atMs: ms, seed: arrivalSeed(seed, count++) }),
      );
    },
  };
}
