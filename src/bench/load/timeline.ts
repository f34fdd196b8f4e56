// @ts-types="npm:@types/d3-array@3.2.2"
import { tickStep } from "d3-array";
import { average, sum } from "../statistics.ts";
import type { RequestRecord } from "./drive.ts";
import type { LoadCellResult, LoadRound } from "./session.ts";

/** How a measurement went, in intervals of equal width: a list of numbers each, one an interval. */
export interface LoadTimeline {
  /** Milliseconds of an interval. */
  readonly width_ms: number;
  /** Requests that arrived, a second. */
  readonly arrival_rate: readonly number[];
  /** Output tokens a second. */
  readonly output_throughput: readonly number[];
  /** Requests that had arrived and did not run yet, mean over the interval. */
  readonly queue: readonly number[];
  /** Sequences in a round, weighted by the rounds' time; null where no round was. */
  readonly batch: readonly (number | null)[];
  /** Draft steps of a round, weighted alike. */
  readonly num_steps: readonly (number | null)[];
}

/** Intervals of the time in which requests arrive, about. */
const INTERVALS = 60;

export function timelineOf({ requests, rounds, seconds }: LoadCellResult): LoadTimeline {
  const total = seconds * 1000;
  const arriving = Math.max(...requests.map(({ dueMs }) => dueMs), 0);
  const width = tickStep(0, Math.max(1, arriving > total / 4 ? arriving : total), INTERVALS);
  const count = Math.max(1, Math.ceil(total / width));
  const at = Array.from({ length: count }, (_, i) => ({ from: i * width, to: (i + 1) * width }));
  const index = (ms: number) => Math.min(count - 1, Math.max(0, Math.floor(ms / width)));
  const arrived = binned(requests.map(({ dueMs }) => [index(dueMs), 1] as const), count);
  const came = requests.flatMap(({ came }) =>
    came.map(({ atMs, tokens }) => [index(atMs), tokens] as const)
  );
  const byInterval = Map.groupBy(rounds, ({ beganMs, ms }) => index(beganMs + ms / 2));
  const ofRounds = (value: (round: LoadRound) => number) =>
    at.map((_, i) => weighted(byInterval.get(i) ?? [], value));
  return {
    width_ms: width,
    arrival_rate: arrived.map((each) => each / width * 1000),
    output_throughput: binned(came, count).map((tokens) => tokens / width * 1000),
    queue: at.map(({ from, to }) => waitingWithin(requests, from, to)),
    batch: ofRounds(({ batch }) => batch),
    num_steps: ofRounds(({ numSteps }) => numSteps),
  };
}

function binned(values: readonly (readonly [bin: number, value: number])[], count: number) {
  const sums: number[] = Array(count).fill(0);
  for (const [bin, value] of values) sums[bin] = (sums[bin] ?? 0) + value;
  return sums;
}

function weighted(
  rounds: readonly LoadRound[],
  value: (round: LoadRound) => number,
): number | null {
  const ms = sum(rounds.map((round) => round.ms));
  if (rounds.length === 0) return null;
  if (ms === 0) return average(rounds.map(value));
  return sum(rounds.map((round) => round.ms * value(round))) / ms;
}

function waitingWithin(requests: readonly RequestRecord[], from: number, to: number): number {
  const waited = requests.map(({ dueMs, runsMs }) =>
    Math.max(0, Math.min(to, runsMs) - Math.max(from, dueMs))
  );
  return sum(waited) / (to - from);
}

/** Most requests that were within [from, to) at once. */
export function peak(spans: readonly (readonly [from: number, to: number])[]): number {
  const changes = spans.flatMap(([from, to]) => [[from, 1], [to, -1]] as const)
    // Whoever leaves makes place for who comes at that moment.
    .toSorted(([a, up], [b, down]) => a - b || up - down);
  let [now, most] = [0, 0];
  for (const [, change] of changes) {
    now += change;
    most = Math.max(most, now);
  }
  return most;
}
