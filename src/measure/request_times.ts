/** When a request arrived and what it received, in milliseconds of one clock. */
export interface RequestEvents {
  /** When the request arrived. */
  readonly dueMs: number;
  /** When tokens were received, and how many. */
  readonly received: readonly { readonly atMs: number; readonly tokens: number }[];
  readonly endMs: number;
  readonly outputTokens: number;
}

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

/** The latencies of a request. `bench` and `bench load` both count them like this. */
export function requestTimes(
  { dueMs, received, endMs, outputTokens }: RequestEvents,
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
