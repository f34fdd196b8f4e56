import assert from "node:assert/strict";
import { fitTimes, NO_FIT, timeRound } from "../../../src/speculate/estimate/round_times.ts";
import { timedRound } from "../../../src/speculate/policies/goodput/evidence.ts";
import { outcomeOf } from "../rounds.ts";
import type { RoundTimings } from "../../../src/speculate/estimate/round_times.ts";

function timed(rounds: readonly { bucket: number; steps: number; ms: number }[]): RoundTimings {
  return rounds.reduce<RoundTimings>(
    (all, each) => timeRound(all, { ...each, rows: each.bucket * (each.steps + 1), cells: 0 }),
    [],
  );
}

function repeated(times: number, bucket: number, steps: number, ms: number) {
  return Array.from({ length: times }, () => ({ bucket, steps, ms }));
}

Deno.test("round times: a mean for each bucket and depth", () => {
  const times = timed([
    ...repeated(40, 4, 3, 2),
    ...repeated(40, 4, 0, 1),
    ...repeated(9, 8, 3, 5),
  ]);
  assert.deepEqual(times.map(({ bucket, steps }) => [bucket, steps]), [[4, 3], [4, 0], [8, 3]]);
  assert.deepEqual(times.map(({ ms }) => Math.round(ms * 1000) / 1000), [2, 1, 5]);
});

Deno.test("round times: one slow round, first or later, and absurd ones, do little", () => {
  const [late] = timed([...repeated(40, 4, 3, 2), { bucket: 4, steps: 3, ms: 500 }]);
  assert((late?.ms ?? 0) < 2.3, `${late?.ms}`);
  const [first] = timed([{ bucket: 4, steps: 3, ms: 500 }, ...repeated(5, 4, 3, 2)]);
  assert((first?.ms ?? 0) < 2.1, `${first?.ms}`);
  assert.deepEqual(
    timed([NaN, Infinity, -1, 0, 1e308].map((ms) => ({ bucket: 1, steps: 1, ms }))),
    [],
  );
});

Deno.test("round times: follow a machine that becomes slower", () => {
  const [found] = timed([...repeated(200, 4, 3, 2), ...repeated(120, 4, 3, 4)]);
  assert(Math.abs((found?.ms ?? 0) - 4) < 0.2, `${found?.ms}`);
});

Deno.test("round times: rounds that verify more or fewer rows are priced by their own", () => {
  const price = ({ rows }: { readonly rows: number }) => rows <= 128 ? 17 : 24;
  const rounds = Array.from({ length: 100 }, (_, i) => i % 4 === 0 ? 192 : 128);
  const times = rounds.reduce<RoundTimings>((all, rows) => {
    return timeRound(all, { bucket: 64, steps: 2, rows, ms: 1.5 * price({ rows }), cells: 0 });
  }, []);
  const fit = fitTimes(times, price, { level: 0, slope: 4, own: 0 });
  assert(Math.abs(fit.factor(64, 2) - 1.5) < 1e-9, String(fit.factor(64, 2)));
});

Deno.test("round times: drafts of requests that had ended were verified for others", () => {
  const accepted = Array<number>(63).fill(0);
  const { sequences, ...outcome } = outcomeOf({ batchSize: 64, numSteps: 2, accepted, drafts: 64 });
  const live = sequences.map((each, i) => ({ ...each, depth: i === 0 ? 2 : 1 }));
  assert.equal(timedRound({ ...outcome, sequences: live }, [64]).rows, 128);
});

Deno.test("round times: depths that have not run are priced by those that have", () => {
  // The table says that a level costs a tenth, but here it costs half.
  const price = ({ steps }: { readonly steps: number }) => 1 + 0.1 * steps;
  const times = timed([0, 1, 3].flatMap((steps) => repeated(30, 4, steps, 1 + 0.5 * steps)));
  const fit = fitTimes(times, price, { level: 0, slope: 4, own: 3 });
  const priced = (steps: number, bucket = 4) => fit.factor(bucket, steps) * price({ steps });
  for (const steps of [0, 1, 3]) {
    assert(Math.abs(priced(steps) / (1 + 0.5 * steps) - 1) < 0.08, `${steps}: ${priced(steps)}`);
  }
  assert(priced(5) > 2.5, `${priced(5)}`);
  assert(priced(5, 8) > 2.5, "another bucket");
});

Deno.test("round times: a table is believed until many rounds say otherwise", () => {
  const believes = { level: 40, slope: 400, own: 20 };
  const dearer = (rounds: number) => {
    const times = timed([...repeated(20, 1, 0, 1), ...repeated(rounds, 1, 3, 2)]);
    const fit = fitTimes(times, () => 1, believes);
    return fit.factor(1, 3) / fit.factor(1, 0);
  };
  assert(dearer(2) < 1.2, `${dearer(2)}`);
  assert(dearer(200) > 1.4, `${dearer(200)}`);
  assert.equal(NO_FIT.factor(3, 1), 1);
  assert.equal(fitTimes([], () => 1, believes).factor(1, 1), 1);
});

Deno.test("round times: where one depth takes longer than the table says, others are worth a try", () => {
  const fit = fitTimes(timed(repeated(10, 1, 7, 3)), () => 1, { level: 40, slope: 400, own: 20 });
  assert(fit.factor(1, 7) > 1.2 * fit.factor(1, 3), `${fit.factor(1, 7)} ${fit.factor(1, 3)}`);
});
