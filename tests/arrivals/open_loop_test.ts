import { deepEqual, equal, ok, throws } from "node:assert/strict";
import { closedLoop } from "../../src/arrivals/arrival.ts";
import { openLoop } from "../../src/arrivals/open_loop.ts";
import { UsageError } from "../../src/errors.ts";
import { constantRate, parseSchedule } from "../../src/arrivals/schedule.ts";
import { gTest } from "../statistics.ts";

const MANY = 20_000;

function gaps(burstiness?: number, seed = 1): number[] {
  const arrivals = openLoop({
    schedule: constantRate(4),
    seed,
    requests: MANY,
    ...burstiness === undefined ? {} : { burstiness },
  });
  return arrivals.map(({ atMs }, n) => atMs - (arrivals[n - 1]?.atMs ?? 0));
}

function moments(values: readonly number[]): { mean: number; variation: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const square = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
  return { mean, variation: Math.sqrt(square) / mean };
}

/** Integral of the gamma density of that shape and mean 1 over (0, x), by Simpson's rule in log x. */
function gammaCdf(x: number, shape: number): number {
  const [low, steps] = [-60, 20_000];
  const width = (Math.log(x) - low) / steps;
  // x^(k-1) e^(-kx) dx = x^k e^(-kx) d(log x); scaled to 1 by the integral to 60.
  const density = (logX: number) => Math.exp(shape * logX - shape * Math.exp(logX));
  let sum = 0;
  for (let i = 0; i <= steps; i++) {
    const weight = i === 0 || i === steps ? 1 : i % 2 === 0 ? 2 : 4;
    sum += weight * density(low + i * width);
  }
  return sum * width / 3;
}

Deno.test("gaps have the distribution of the burstiness", () => {
  for (const shape of [1, 0.25, 0.5, 4]) {
    const drawn = gaps(shape).map((ms) => ms / 250);
    const whole = gammaCdf(60, shape);
    const edges = [0.02, 0.1, 0.3, 0.6, 0.9, 1.2, 1.6, 2.2, 3.2, Infinity];
    const below = edges.map((edge) => edge === Infinity ? 1 : gammaCdf(edge, shape) / whole);
    const law = below.map((at, i) => at - (below[i - 1] ?? 0));
    const counts = edges.map((edge, i) =>
      drawn.filter((gap) => gap < edge && gap >= (edges[i - 1] ?? 0)).length
    );
    const { p } = gTest(counts, law);
    ok(p > 1e-3, `shape ${shape}: p = ${p}, ${counts}`);
    const { mean, variation } = moments(drawn);
    // 5 standard errors of the mean; the deviation's is wider where the tail is heavy.
    ok(Math.abs(mean - 1) < 5 / Math.sqrt(shape * MANY), `shape ${shape}: mean ${mean}`);
    ok(Math.abs(variation * Math.sqrt(shape) - 1) < 0.1, `shape ${shape}: ${variation}`);
  }
});

Deno.test("gaps are independent of each other, and endless burstiness makes them equal", () => {
  const drawn = gaps();
  const { mean } = moments(drawn);
  const [around, variance] = drawn.slice(1).reduce(
    ([sum, square], gap, n) => [
      sum + (gap - mean) * ((drawn[n] ?? 0) - mean),
      square + (gap - mean) ** 2,
    ],
    [0, 0],
  );
  ok(Math.abs(around / variance) < 5 / Math.sqrt(MANY), `${around / variance}`);
  deepEqual(
    openLoop({ schedule: constantRate(4), seed: 1, requests: 3, burstiness: Infinity })
      .map(({ atMs }) => atMs),
    [250, 500, 750],
  );
});

Deno.test("a list is a function of its seed, and longer ones begin with it", () => {
  const options = { schedule: constantRate(3), burstiness: 0.7, seed: 5 };
  const some = openLoop({ ...options, requests: 50 });
  deepEqual(openLoop({ ...options, requests: 50 }), some);
  deepEqual(openLoop({ ...options, requests: 90 }).slice(0, 50), some);
  const other = openLoop({ ...options, requests: 50, seed: 6 });
  ok(other.every(({ atMs, seed }, n) => atMs !== some[n]?.atMs && seed !== some[n]?.seed));
  // Another rate stretches the times: the same draws, request by request.
  const fast = openLoop({ ...options, schedule: constantRate(6), requests: 50 });
  for (const [n, { atMs, seed }] of fast.entries()) {
    ok(Math.abs(atMs * 2 - (some[n]?.atMs ?? 0)) < 1e-9 * atMs);
    equal(seed, some[n]?.seed);
  }
  equal(new Set(some.map(({ seed }) => seed)).size, 50);
  equal(some.length, 50);
  ok(some.every(({ atMs }, n) => n === 0 || atMs >= (some[n - 1]?.atMs ?? 0)));
});

Deno.test("rates change at the times of the schedule, in expected number and law", () => {
  const schedule = parseSchedule("0:2,60:20,120:0,150:5");
  const spans = [[0, 60, 2], [60, 120, 20], [120, 150, 0], [150, 300, 5]] as const;
  const counts = spans.map(() => [] as number[]);
  for (let seed = 0; seed < 60; seed++) {
    const arrivals = openLoop({ schedule, seed, durationMs: 300_000 });
    for (const [i, [from, to]] of spans.entries()) {
      counts[i]?.push(
        arrivals.filter(({ atMs }) => atMs >= from * 1000 && atMs < to * 1000).length,
      );
    }
  }
  for (const [i, [from, to, rate]] of spans.entries()) {
    const expected = (to - from) * rate;
    const { mean, variation } = moments(counts[i] ?? []);
    if (expected === 0) {
      ok((counts[i] ?? []).every((count) => count === 0));
      continue;
    }
    ok(Math.abs(mean - expected) < 5 * Math.sqrt(expected / 60), `${from}: ${mean}`);
    // Counts of a Poisson process: variance = mean.
    const dispersion = (variation * mean) ** 2 / mean;
    ok(dispersion > 0.5 && dispersion < 1.7, `${from}: ${dispersion}`);
  }
});

Deno.test("ends of a list: number, duration, and a rate that stays 0", () => {
  const schedule = parseSchedule("0:10,1:0");
  const all = openLoop({ schedule, seed: 1, requests: 1000 });
  ok(all.length > 0 && all.length < 40 && all.every(({ atMs }) => atMs < 1000));
  const short = openLoop({ schedule, seed: 1, durationMs: 500 });
  deepEqual(short, all.filter(({ atMs }) => atMs < 500));
  deepEqual(openLoop({ schedule, seed: 1, requests: 0 }), []);
  deepEqual(
    openLoop({ schedule: constantRate(Infinity), seed: 1, requests: 3 }).map(({ atMs }) => atMs),
    [0, 0, 0],
  );
});

Deno.test("a duration that a list would not end with is refused, unless a number ends it", () => {
  const many = { schedule: constantRate(1e6), seed: 1, durationMs: 1100 };
  throws(
    () => openLoop(many),
    new UsageError(
      'Cannot use "--duration 1.1": more than 1000000 requests would arrive; ' +
        "give a shorter one or --num-requests",
    ),
  );
  equal(openLoop({ ...many, requests: 3 }).length, 3);
});

Deno.test("a closed loop's requests wait from the start, with the seeds of an open loop", () => {
  const closed = closedLoop({ seed: 9, requests: 4 });
  deepEqual(closed.map(({ atMs }) => atMs), [0, 0, 0, 0]);
  const open = openLoop({ schedule: constantRate(1), seed: 9, requests: 4 });
  deepEqual(closed.map(({ seed }) => seed), open.map(({ seed }) => seed));
});
