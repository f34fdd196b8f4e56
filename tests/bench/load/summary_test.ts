import { deepEqual, equal, match, ok } from "node:assert/strict";
import { rateCase } from "../../../src/bench/load/plan.ts";
import { summaries } from "../../../src/bench/load/summary.ts";
import { loadMarkdown } from "../../../src/bench/load/table.ts";
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

Deno.test("a narrow terminal gets fewer columns, and is told", () => {
  const widths = [400, 200, 120, 80].map((width) => {
    const [, , head = "", ...rest] = loadMarkdown(ROWS, width).split("\n");
    equal(rest.includes("--output md: all columns"), width < 400);
    return head.length;
  });
  ok(
    widths.every((width, i) => i === 0 || i === 3 || width < (widths[i - 1] ?? 0)),
    String(widths),
  );
  ok(widths.every((width, i) => width <= ([400, 200, 120, 80][i] ?? 0) || i === 3), String(widths));
  match(loadMarkdown(ROWS, 80), /\| load .*\| policy .*\| tokens\/s \| tokens\/s over/);
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

Deno.test("the table has what varies; what was chosen by batch size, and the noise", () => {
  const text = loadMarkdown(ROWS);
  match(text, /^model fake-1B, draft .*, max batch 4, objectives TTFT 100 ms\n\n\| load /);
  match(text, /\| goodput req\/s \|/);
  match(text, /tokens\/s over static:num_steps=0 \[95 %\]/);
  ok(!text.includes("preempted"), "nothing was");
  match(text, /Mean draft steps by requests in a round:\n\n\| load .*\| +1 \| +2 \| +3-4 \|/);
  match(text, /Noise, the first policy against itself: 20 req\/s: tokens\/s 1\.0\dx/);
  const one = loadMarkdown(ROWS.filter(({ load, fixed }) => load === "20 req/s" && fixed));
  match(one, /load 20 req\/s/);
  ok(!one.includes("| load") && !one.includes("Mean draft steps"));
  ok(!/NaN|undefined|null/.test(text + one));
});
