import { deepEqual, match } from "node:assert/strict";
import type { LoadRow } from "../../../src/measure/load/row.ts";
import type { LoadSummary } from "../../../src/measure/load/summary.ts";
import { summaries } from "../../../src/measure/load/summary.ts";
import { loadVerdicts } from "../../../src/measure/load/verdict.ts";
import { closedCase, rateCase } from "../../../src/measure/load/plan.ts";
import { planOf, sampleLoadRows } from "./fake.ts";

const OPEN = summaries(
  await sampleLoadRows(planOf({ cases: [rateCase(9, 1, { requests: 8 })] }, ["off", "ema"])),
);
const CLOSED = summaries(
  await sampleLoadRows(planOf({ cases: [closedCase(2, 8)] }, ["off", "ema"])),
);
type Interval = readonly [low: number, ratio: number, high: number];

/** The lines of `off`, of `off` again, and of others with these ratios to `off`. */
function verdictOf(
  [off, again]: readonly LoadSummary[],
  key: "latencyRatio" | "throughputRatio",
  intervals: Readonly<Record<string, Interval>>,
): string {
  const { noise = [0.95, 1, 1.05] as const, ...others } = intervals;
  // The three numbers are the ratios of the blocks too.
  const ratioed = (label: string, [low, ratio, high]: Interval) => ({
    ...again as LoadSummary,
    label,
    rows: [low, ratio, high].map((factor, block) => ({
      ...again?.rows[block] as LoadRow,
      mean_e2el_ms: 100 * factor,
      output_throughput: 100 * factor,
    })),
    again: label === "off (A/A)",
    latencyRatio: null,
    throughputRatio: null,
    [key]: { low, ratio, high },
  });
  const all = [off as LoadSummary, ratioed("off (A/A)", noise)];
  all.push(...Object.entries(others).map(([label, interval]) => ratioed(label, interval)));
  const [line = "", ...more] = loadVerdicts(all);
  deepEqual(more, []);
  return line;
}

const CASES: readonly [name: string, others: Readonly<Record<string, Interval>>, says: RegExp][] = [
  [
    "a latency below the noise",
    { "3 steps": [0.8, 0.85, 0.9], ema: [0.6, 0.65, 0.7] },
    /^9 req\/s: fastest is ema, mean E2E 0\.65x \[0\.60, 0\.70\] of off$/,
  ],
  [
    "two that differ by less than their blocks vary",
    { "3 steps": [0.6, 0.7, 0.8], ema: [0.6, 0.65, 0.7] },
    /^9 req\/s: fastest is ema, .* of off; not shown to differ from it: 3 steps \(0\.70x \[0\.60, 0\.80\]\)$/,
  ],
  [
    "two whose intervals overlap, though one is faster in every block by the same share",
    { "3 steps": [0.61, 0.71, 0.81], ema: [0.6, 0.7, 0.8] },
    /^9 req\/s: fastest is ema, mean E2E 0\.70x \[0\.60, 0\.80\] of off$/,
  ],
  [
    "within the noise",
    { ema: [0.8, 0.85, 0.9], noise: [0.85, 1, 1.2] },
    /^9 req\/s: nothing is shown to be faster than off: the best is ema, mean E2E 0\.85x \[0\.80, 0\.90\] of off, and its interval overlaps the noise \(off against itself, 1\.00x \[0\.85, 1\.20\]\); --repeat 6 narrows both$/,
  ],
  [
    "everything slower",
    { "3 steps": [1.2, 1.3, 1.4], ema: [1.5, 1.6, 1.7] },
    /^9 req\/s: fastest is off: all others are slower; the next is 3 steps, mean E2E 1\.30x/,
  ],
];

for (const [name, others, says] of CASES) {
  Deno.test(`the verdict of a load: ${name}`, () => {
    match(verdictOf(OPEN, "latencyRatio", others), says);
  });
}

Deno.test("the verdict of a closed loop is about tokens/s, where more is better", () => {
  match(
    verdictOf(CLOSED, "throughputRatio", { "3 steps": [0.8, 0.9, 0.95], ema: [1.3, 1.4, 1.5] }),
    /^2 in flight: fastest is ema, tokens\/s 1\.40x \[1\.30, 1\.50\] of off$/,
  );
});

Deno.test("a load has no verdict of two blocks, nor of one policy", async () => {
  const cases = [rateCase(9, 1, { requests: 8 })];
  const two = await sampleLoadRows(planOf({ cases, blocks: 2 }, ["off", "ema"]));
  match(loadVerdicts(summaries(two))[0] ?? "", /^9 req\/s: no verdict: 2 blocks are too few/);
  const alone = await sampleLoadRows(planOf({ cases }, ["ema"]));
  deepEqual(loadVerdicts(summaries(alone)), []);
});
