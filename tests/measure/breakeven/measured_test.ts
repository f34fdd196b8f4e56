import { deepEqual, equal, ok } from "node:assert/strict";
import {
  type BreakEvenReport,
  measuredReport,
  type MeasuredSteps,
} from "../../../src/measure/breakeven/measured.ts";
import { at as msAt, roundMs } from "../../../src/speculate/costs/lookup.ts";
import { SIMPLE } from "../../speculate/costs/table.ts";
import { breakEvenText } from "../../../src/measure/breakeven/text.ts";
import type { CellResult } from "../../../src/measure/runner.ts";
import { breakEven } from "../../../src/speculate/break_even.ts";
import { fakeCell, SUBJECT } from "../fake.ts";
import { sampleReport } from "./sample.ts";

const { report, rows } = await sampleReport();
const close = (got: number, wanted: number, within = 1e-9) =>
  ok(Math.abs(got - wanted) <= within * Math.abs(wanted), `${got}, not ${wanted}`);
const atRows = (rows: number) => msAt(SIMPLE.verify, rows);
const stepsOf = ({ measured }: BreakEvenReport): readonly MeasuredSteps[] => measured?.steps ?? [];

Deno.test("measured: c and v are those of the made-up machine", () => {
  deepEqual(stepsOf(report).map(({ steps }) => steps), [1, 3, 7]);
  // tests/measure/fake.ts: milliseconds of a plain step and of the parts of a round, 5 % noise.
  const plainMs = 4 * 1.03 + 0.3;
  close(report.measured?.plainMs ?? NaN, plainMs, 0.05);
  for (const [at, { steps, draft, verify, tokens }] of stepsOf(report).entries()) {
    close(draft, (0.5 * steps + 0.4) / steps / plainMs, 0.05);
    close(verify, (4 * (1.03 + 0.02 * steps) + 0.3) / plainMs, 0.05);
    equal(tokens, rows.find(({ num_steps }) => num_steps === steps)?.mean_accept_length);
    equal(report.rows[at]?.cost, steps * draft + verify);
  }
});

Deno.test("measured: blocks in which the machine did something else do not move c and v", async () => {
  const slower = (cell: CellResult): CellResult => ({
    ...cell,
    rounds: cell.rounds.map((round) => ({
      ...round,
      draftMs: 10 * round.draftMs,
      hostMs: 10 * round.hostMs,
      ms: 10 * round.ms,
    })),
  });
  const disturbed = await sampleReport({
    cell: (spec, turn) => turn % 4 === 0 ? slower(fakeCell(spec)) : fakeCell(spec),
    blocks: 8,
  });
  for (const [at, { draft, verify }] of stepsOf(disturbed.report).entries()) {
    close(draft, stepsOf(report)[at]?.draft ?? NaN, 0.15);
    close(verify, stepsOf(report)[at]?.verify ?? NaN, 0.15);
  }
});

Deno.test("measured: c and v of a cost table, where there is one; alpha and speed-ups stay", () => {
  const { facts = [] } = report.measured ?? {};
  const found = measuredReport(rows, [], facts, SIMPLE);
  equal(found.alpha, report.alpha);
  const plainMs = SIMPLE.host + atRows(1);
  equal(found.measured?.plainMs, plainMs);
  deepEqual(found.measured?.facts.at(-1), ["costs", "from the cost table"]);
  for (const [at, { steps, draft, verify, speedup }] of stepsOf(found).entries()) {
    const ms = roundMs(SIMPLE, { batch: 1, steps, cells: 0 });
    close((steps * draft + verify) * plainMs, ms);
    close(verify * plainMs, SIMPLE.host + atRows(steps + 1));
    deepEqual(speedup, stepsOf(report)[at]?.speedup);
  }
});

Deno.test("measured: warming up does not count", async () => {
  const cold = await sampleReport({
    cell: (spec, turn) => fakeCell(spec.repeat < 0 ? { ...spec, outputTokens: 9999 } : spec, turn),
  });
  deepEqual(cold.report, report);
});

Deno.test("measured: alpha is fitted to the deepest rounds; the one c and v are those of the fastest", () => {
  const { measured, alpha, costs, rows: found } = report;
  const rates = measured?.acceptedByPosition ?? [];
  deepEqual(rates, rows.find(({ num_steps }) => num_steps === 7)?.acceptance_per_position);
  const sum = (of: readonly number[]) => of.reduce((a, b) => a + b);
  close(alpha, sum(rates) / sum([1, ...rates.slice(0, -1)]));
  const fastest = breakEven().best(found)?.steps;
  const own = stepsOf(report).find(({ steps }) => steps === fastest);
  deepEqual(costs, { draft: own?.draft, verify: own?.verify });
});

Deno.test("measured: the text has the fit, the cost table and what it measured", () => {
  const text = breakEvenText(report);
  ok(text.includes("model fake-1B"));
  const fit = `alpha ${
    report.alpha.toFixed(3)
  }: accepted over tested drafts of the rounds of 7 steps`;
  ok(text.includes(fit));
  ok(/^steps +pays at [137, ]+/m.test(text), text);
  equal(text.includes("SIMULATED"), false);
  equal(text.includes("no timestamp queries"), false);
  const lines = text.split("\n").filter((line) => /^\| +[137] \|/.test(line));
  equal(lines.length, 6);
});

Deno.test("measured: simulated acceptance says so", async () => {
  const { report } = await sampleReport({ subject: { ...SUBJECT, simulated: true } });
  ok(breakEvenText(report).startsWith("SIMULATED"));
});

Deno.test("measured: an adapter that times no parts has the whole round in v, and is told", async () => {
  const untimed = await sampleReport({
    cell: (spec, turn) => {
      const cell = fakeCell(spec, turn);
      const none = { draftMs: 0, verifyMs: 0, extendMs: 0 };
      return {
        ...cell,
        rounds: cell.rounds.map((round) => ({ ...round, ...none, hostMs: round.ms })),
      };
    },
  });
  for (const [at, { draft, verify }] of stepsOf(untimed.report).entries()) {
    equal(draft, 0);
    close(verify, report.rows[at]?.cost ?? NaN, 0.05);
  }
  ok(breakEvenText(untimed.report).includes("no timestamp queries"));
});
