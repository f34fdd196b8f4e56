import { deepEqual, equal } from "node:assert/strict";
import { emitConfig } from "../../src/bench/emit_config.ts";
import type { BenchRow } from "../../src/bench/row.ts";
import { parseAdaptiveConfig } from "../../src/speculate/adaptive_config.ts";
import { sampleRows } from "./fake.ts";

const [BASE] = await sampleRows({ batch: [1], numSteps: [], presets: [], blocks: 2 });

/** A static row with these speed-ups over plain, a block each. */
function row(batch: number, numSteps: number, speedups: readonly number[], depth = 0): BenchRow {
  return {
    ...BASE as BenchRow,
    batch,
    depth,
    num_steps: numSteps,
    setting: `${numSteps} steps`,
    setting_kind: numSteps === 0 ? "plain" : "static",
    speedup: { ratio: NaN, low: null, high: null, log_ratios: speedups.map(Math.log) },
  };
}

function steps(rows: readonly BenchRow[]): Record<string, readonly number[]> {
  const slots = Object.entries(emitConfig(rows));
  return Object.fromEntries(slots.map(([batch, { candidate_steps }]) => [batch, candidate_steps]));
}

Deno.test("the fastest steps of each batch size, in SGLang's format", () => {
  const rows = [
    row(8, 0, [1, 1, 1]),
    row(8, 3, [0.8, 0.81, 0.79]),
    row(1, 0, [1, 1, 1]),
    row(1, 3, [1.5, 1.52, 1.48]),
    row(1, 7, [1.2, 1.21, 1.2]),
  ];
  const config = emitConfig(rows);
  deepEqual(config, {
    1: { candidate_steps: [3], up_hysteresis: 0, down_hysteresis: -0.25, ceiling_coeff: 0 },
    8: { candidate_steps: [0], up_hysteresis: 0, down_hysteresis: -0.25, ceiling_coeff: 0 },
  });
  parseAdaptiveConfig(JSON.parse(JSON.stringify(config)));
});

Deno.test("within one standard error fewer steps win", () => {
  // log-ratio of 7 over 3 steps: about +0.02, -0.02, +0.03: mean 0.01, standard error 0.015
  const noisy = [row(1, 0, [1, 1, 1]), row(1, 3, [1.5, 1.5, 1.5]), row(1, 7, [1.53, 1.47, 1.545])];
  deepEqual(steps(noisy), { 1: [3] });
  const clear = [row(1, 0, [1, 1, 1]), row(1, 3, [1.5, 1.5, 1.5]), row(1, 7, [1.53, 1.53, 1.545])];
  deepEqual(steps(clear), { 1: [7] });
  // One block says nothing of noise: the fastest wins.
  deepEqual(steps([row(1, 0, [1]), row(1, 1, [1.01])]), { 1: [1] });
});

Deno.test("all cases of a batch size count alike; a setting must be in all of them", () => {
  const rows = [
    ...[row(2, 0, [1, 1]), row(2, 1, [1.3, 1.3]), row(2, 3, [1.6, 1.6])],
    ...[row(2, 0, [1, 1], 1024), row(2, 1, [1.2, 1.2], 1024), row(2, 3, [0.7, 0.7], 1024)],
    row(2, 7, [9, 9]),
  ];
  deepEqual(steps(rows), { 2: [1] });
});

Deno.test("presets and the A/A row are not candidates", () => {
  const again: BenchRow = { ...row(1, 0, [9, 9]), setting_kind: "plain again" };
  const preset: BenchRow = { ...row(1, 0, [9, 9]), setting_kind: "preset", num_steps: null };
  deepEqual(steps([row(1, 0, [1, 1]), row(1, 2, [1.1, 1.1]), again, preset]), { 1: [2] });
  equal(Object.keys(emitConfig([])).length, 0);
});
