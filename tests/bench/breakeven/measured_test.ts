import { deepEqual, equal, ok } from "node:assert/strict";
import { measuredReport } from "../../../src/bench/breakeven/measured.ts";
import { breakEvenText } from "../../../src/bench/breakeven/text.ts";
import { breakEven } from "../../../src/speculate/break_even.ts";
import { sampleRows, SUBJECT } from "../fake.ts";

const rows = await sampleRows({ batch: [1], numSteps: [3, 1, 7], presets: [], blocks: 3 });
const report = measuredReport(rows, [["model", "fake-1B"]]);
const rowOf = (steps: number) => rows.find(({ num_steps }) => num_steps === steps);
const close = (got: number, wanted: number) =>
  ok(Math.abs(got - wanted) < 1e-9, `${got} ${wanted}`);

Deno.test("measured: K c + v is the whole round over the whole plain step", () => {
  const { measured, rows: found } = report;
  deepEqual(measured?.steps.map(({ steps }) => steps), [1, 3, 7]);
  const plain = rows.find(({ setting_kind }) => setting_kind === "plain")?.round_ms.total ?? NaN;
  equal(measured.plainMs, plain);
  for (const [at, { steps, draft, verify, tokens }] of measured.steps.entries()) {
    const { round_ms, mean_accept_length } = rowOf(steps) ?? {};
    close(steps * draft + verify, (round_ms?.total ?? NaN) / plain);
    close(draft * steps * plain, (round_ms?.draft ?? NaN) + (round_ms?.extend ?? NaN));
    equal(tokens, mean_accept_length);
    close(found[at]?.cost ?? NaN, (round_ms?.total ?? NaN) / plain);
  }
});

Deno.test("measured: alpha is fitted to the deepest rounds; the one c and v are those of the fastest", () => {
  const { measured, alpha, costs, rows: found } = report;
  deepEqual(measured?.acceptedByPosition, rowOf(7)?.acceptance_per_position);
  const rates = measured?.acceptedByPosition ?? [];
  const tested = [1, ...rates.slice(0, -1)];
  const sum = (of: readonly number[]) => of.reduce((a, b) => a + b);
  close(alpha, sum(rates) / sum(tested));
  const fastest = breakEven().best(found)?.steps;
  const own = measured?.steps.find(({ steps }) => steps === fastest);
  deepEqual(costs, { draft: own?.draft, verify: own?.verify });
});

Deno.test("measured: the text has the fit, the cost table and what it measured", () => {
  const text = breakEvenText(report);
  ok(text.includes("model fake-1B"));
  ok(
    text.includes(
      `alpha ${report.alpha.toFixed(3)}: accepted over tested drafts of the rounds of 7 steps`,
    ),
  );
  ok(/^steps +pays at [137, ]+/m.test(text), text);
  equal(text.includes("SIMULATED"), false);
  const lines = text.split("\n").filter((line) => /^\| +[137] \|/.test(line));
  equal(lines.length, 6);
});

Deno.test("measured: simulated acceptance says so", async () => {
  const subject = { ...SUBJECT, simulated: true };
  const rows = await sampleRows({ batch: [1], numSteps: [1], presets: [], blocks: 3, subject });
  ok(breakEvenText(measuredReport(rows, [])).startsWith("SIMULATED"));
});

Deno.test("measured: an adapter that times no parts has the whole round in v, and is told", () => {
  const untimed = rows.map((row) => {
    const { total } = row.round_ms;
    return { ...row, round_ms: { draft: 0, verify: 0, extend: 0, host: total, total } };
  });
  const { measured, rows: found } = measuredReport(untimed, []);
  ok(measured?.steps.every(({ draft }) => draft === 0));
  for (const [at, { cost }] of found.entries()) close(cost, report.rows[at]?.cost ?? NaN);
  ok(breakEvenText(measuredReport(untimed, [])).includes("no timestamp queries"));
  equal(breakEvenText(report).includes("no timestamp queries"), false);
});
