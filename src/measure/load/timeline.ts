// @ts-types="npm:@types/d3-array@3.2.2"
import { max, tickStep } from "d3-array";
import type { LoadCellResult, LoadRound } from "./session.ts";

/** A measurement over time, in intervals of equal width. Each list has one number for each interval. */
export interface LoadTimeline {
  /** Width of an interval in milliseconds. */
  readonly width_ms: number;
  /** Requests that arrived per second. */
  readonly arrival_rate: readonly number[];
  /** Output tokens per second. */
  readonly output_throughput: readonly number[];
  /** Mean number of requests that had arrived and did not run yet; null for a server. */
  readonly queue: readonly (number | null)[];
  /** Mean sequences in a round, weighted by the time of the rounds; 0 if no round ran, null for a server. */
  readonly batch: readonly (number | null)[];
  /** Mean draft steps of a round, weighted in the same way; null if no round ran. */
  readonly num_steps: readonly (number | null)[];
}

/**
 * About the least and the most intervals of the time in which requests arrive, and the mean number of requests in each.
 */
const [MIN, MAX, REQUESTS] = [12, 60, 3];

/** The timeline of a measurement. */
export function timelineOf(
  { requests, failed, rounds, seconds, acceptance }: LoadCellResult,
): LoadTimeline {
  const total = seconds * 1000;
  const arrived = [...requests, ...failed];
  const arriving = max(arrived, ({ dueMs }) => dueMs) ?? 0;
  const intervals = Math.min(MAX, Math.max(MIN, arrived.length / REQUESTS));
  const width = tickStep(0, Math.max(1, arriving, total / 2), intervals);
  const count = Math.max(1, Math.ceil(total / width));
  const index = (ms: number) => Math.min(count - 1, Math.max(0, Math.floor(ms / width)));
  const per = (sums: readonly number[], ms: number) => sums.map((each) => each / ms);
  const spread = (spans: readonly Span[]) => overlaps(spans, { width, count, index });
  const received = requests.flatMap(({ received }) =>
    received.map((each) => [each.atMs, each.tokens] as const)
  );
  const rounded = (value: (round: LoadRound) => number) =>
    spread(rounds.map((round) => ({ ...spanOf(round), weight: value(round) })));
  const ran = rounded(() => 1);
  const mean = (value: (round: LoadRound) => number, idle: number | null) =>
    rounded(value).map((sum, i) => ran[i] ? sum / ran[i] : idle);
  return {
    width_ms: width,
    arrival_rate: per(
      binned(arrived.map(({ dueMs }) => [index(dueMs), 1] as const), count),
      width / 1000,
    ),
    output_throughput: per(
      binned(received.map(([atMs, tokens]) => [index(atMs), tokens] as const), count),
      width / 1000,
    ),
    queue: acceptance !== undefined ? Array<null>(count).fill(null) : per(
      spread(requests.map(({ dueMs, runsMs }) => ({ from: dueMs, to: runsMs, weight: 1 }))),
      width,
    ),
    batch: mean(({ batch }) => batch, rounds.length === 0 ? null : 0),
    num_steps: mean(({ numSteps }) => numSteps, null),
  };
}

function binned(values: readonly (readonly [bin: number, value: number])[], count: number) {
  const sums: number[] = Array(count).fill(0);
  for (const [bin, value] of values) sums[bin] = (sums[bin] ?? 0) + value;
  return sums;
}

interface Span {
  readonly from: number;
  readonly to: number;
  readonly weight: number;
}

function spanOf({ beganMs, ms }: LoadRound): Omit<Span, "weight"> {
  return { from: beganMs, to: beganMs + ms };
}

/** For each interval the sum over the spans of weight times the milliseconds that lie within the interval. */
function overlaps(
  spans: readonly Span[],
  { width, count, index }: { width: number; count: number; index: (ms: number) => number },
): number[] {
  return binned(
    spans.flatMap(({ from, to, weight }) => {
      const first = index(from);
      return Array.from({ length: index(to) - first + 1 }, (_, i) => {
        const bin = first + i;
        const within = Math.min(to, (bin + 1) * width) - Math.max(from, bin * width);
        return [bin, weight * Math.max(0, within)] as const;
      });
    }),
    count,
  );
}

/** The most spans [from, to) that overlap at any time. */
export function peak(spans: readonly (readonly [from: number, to: number])[]): number {
  const changes = spans.flatMap(([from, to]) => [[from, 1], [to, -1]] as const)
    // At equal times an end comes before a start, so these spans do not overlap.
    .toSorted(([a, up], [b, down]) => a - b || up - down);
  let [now, most] = [0, 0];
  for (const [, change] of changes) {
    now += change;
    most = Math.max(most, now);
  }
  return most;
}
