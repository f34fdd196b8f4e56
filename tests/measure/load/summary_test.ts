import { deepEqual, equal, match, ok } from "node:assert/strict";
import { rateCase } from "../../../src/measure/load/plan.ts";
import { inPlanOrder, summaries } from "../../../src/measure/load/summary.ts";
import { loadMarkdown, loadTerminal } from "../../../src/measure/load/table.ts";
import { loadVerdicts } from "../../../src/measure/load/verdict.ts";
import { planOf, sampleLoadRows } from "./fake.ts";

const CASES = [rateCase(20, 1, { requests: 30 }), rateCase(200, 1, { requests: 40 })];
const ROWS = await sampleLoadRows(planOf({ cases: CASES }));

Deno.test("a summary pools requests, averages blocks and pairs ratios by block", () => {
  const all = summaries(ROWS);
  equal(all.length, 8);
  const [off, again, three] = all.slice(4);
  ok(off && again && three);
  equal(off.load, "200 req/s");
  deepEqual([off.throughputRatio, off.latencyRatio], [null, null]);
  const own = ROWS.filter(({ load, label }) => load === "200 req/s" && label === three.label);
  const base = ROWS.filter(({ load, label }) => load === "200 req/s" && label === off.label);
  const logs = [0, 1, 2].map((block) => {
    const of = (rows: typeof own) => rows.find((row) => row.block === block)?.output_throughput;
    return Math.log((of(own) ?? NaN) / (of(base) ?? NaN));
  });
  const mean = logs.reduce((sum, log) => sum + log, 0) / 3;
  ok(Math.abs((three.throughputRatio?.ratio ?? 0) - Math.exp(mean)) < 1e-12);
  const { low, high, ratio } = three.throughputRatio ?? { low: 1, high: 0, ratio: 0 };
  ok(low !== null && high !== null && low < ratio && ratio < high);
  const sorted = own.flatMap(({ latencies }) => latencies).toSorted((a, b) => a - b);
  equal(sorted.length, 120);
  ok(Math.abs((three.e2el.p50 ?? 0) - ((sorted[59] ?? 0) + (sorted[60] ?? 0)) * 500) < 1e-9);
});

Deno.test("summaries are in the order of the plan, whatever was measured first", () => {
  const { arms } = planOf({ cases: CASES });
  const labels = arms.map(({ label }) => label);
  const rows = inPlanOrder(ROWS.toReversed(), arms);
  deepEqual(summaries(rows).slice(0, 4).map(({ label }) => label), labels);
  equal(summaries(rows)[0]?.throughputRatio, null);
});

Deno.test("regret is counted against the best with fixed steps under that load", () => {
  for (const load of ["20 req/s", "200 req/s"]) {
    const all = summaries(ROWS).filter((one) => one.load === load);
    const fixed = all.filter((one) => one.fixed && !one.again);
    const most = Math.max(...fixed.map(({ outputThroughput }) => outputThroughput));
    for (const one of fixed) {
      const best = one.outputThroughput === most;
      equal(one.throughputRegret?.ratio === 1, best, one.label);
    }
    ok(all.every(({ throughputRegret, latencyRegret }) => throughputRegret && latencyRegret));
  }
  const choosing = summaries(ROWS.filter(({ fixed }) => !fixed));
  deepEqual(choosing.map(({ throughputRegret }) => throughputRegret), [null, null]);
});

Deno.test("a terminal of 80 columns keeps tokens/s, TTFT, TPOT and E2E; a wider one shows more", () => {
  for (const columns of [80, 100, 140, 200]) {
    const lines = loadTerminal(ROWS, { columns }).split("\n");
    const longest = Math.max(...lines.map((line) => line.length));
    ok(longest <= columns, `${longest} characters in ${columns} columns`);
    const lower = lines.findIndex((line) => line.includes("policy"));
    const words = (at: number) => (lines[at] ?? "").trim().split(/ {2,}/);
    const upper = ["TTFT ms", "TPOT ms", "E2E ms"];
    deepEqual(words(lower - 1).slice(0, 3), upper);
    deepEqual(words(lower).slice(0, 6), [
      ...["load", "policy", "tokens/s", "p50/p99", "p50/p99", "p50"],
    ]);
    equal(words(lower - 1).includes("ITL ms"), columns === 200);
    equal(lines.filter((line) => /^200? req\/s {2,}/.test(line)).length, 8 + 2, "a line a policy");
  }
});

Deno.test("lines of a terminal are broken between words, and every load has a verdict", () => {
  const device =
    "an adapter with a name that is longer than what is left of the line of a terminal";
  const rows = ROWS.map((row) => ({ ...row, device }));
  const text = loadTerminal(rows, { columns: 80 });
  ok(text.replace(/\n {2}/g, " ").includes(`device      ${device}`));
  for (const shown of [text, loadMarkdown(rows)]) {
    match(shown, /^20 req\/s: (fastest is|nothing is shown to be faster) /m);
    match(shown, /^200 req\/s: (fastest is|nothing is shown to be faster) /m);
  }
});

Deno.test("a block that only some policies have is not paired", () => {
  const [off, , , ema] = summaries(
    ROWS.filter(({ load, label, block }) =>
      load === "20 req/s" && (block < 2 || !label.startsWith("ema"))
    ),
  );
  deepEqual([off?.rows.length, ema?.rows.length], [3, 2]);
  equal(ema?.throughputRatio?.low, null, "two pairs have no interval");
});

Deno.test("a load that was stopped before its first policy compares with no other", () => {
  const rows = ROWS.filter(({ load, label }) => load === "20 req/s" || label !== ROWS[0]?.label);
  const all = summaries(rows);
  const stopped = all.filter(({ load }) => load === "200 req/s");
  equal(stopped.length, 3);
  for (const { throughputRatio, latencyRatio } of stopped) {
    deepEqual([throughputRatio, latencyRatio], [null, null]);
  }
  deepEqual(loadVerdicts(all).map((line) => line.split(":")[0]), ["20 req/s"]);
});

Deno.test("the table has what varies; what was chosen by batch size, and the noise", () => {
  const text = loadMarkdown(ROWS);
  match(
    text,
    /^model fake-1B, draft .*, max batch 4, KV cache \d+ tokens, objectives TTFT 100 ms\n\n\| load /,
  );
  match(text, /\| goodput req\/s \|/);
  match(text, /tokens\/s over static:num_steps=0 \[95 %\]/);
  ok(!text.includes("preempted"), "nothing was");
  match(text, /Mean draft steps by requests in a round:\n\n\| load .*\| +1 \| +2 \| +3-4 \|/);
  match(text, /Noise, the first policy against itself: 20 req\/s: tokens\/s 1\.0\dx/);
  match(text, /200 req\/s: .*\n$/);
  const one = loadMarkdown(ROWS.filter(({ load, fixed }) => load === "20 req/s" && fixed));
  match(one, /load 20 req\/s/);
  ok(!one.includes("| load") && !one.includes("Mean draft steps"));
  ok(!/NaN|undefined|null/.test(text + one));
});
