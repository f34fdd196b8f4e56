import { deepEqual, equal } from "node:assert/strict";
import { emitConfig } from "../../src/measure/emit_config.ts";
import type { BenchRow } from "../../src/measure/row.ts";
import { parseAdaptiveConfig } from "../../src/speculate/adaptive_config.ts";
import { adaptive, invented, noise } from "./invented.ts";

function steps(rows: readonly BenchRow[]): Record<string, readonly number[]> {
  const slots = Object.entries(emitConfig(rows));
  return Object.fromEntries(slots.map(([batch, { candidate_steps }]) => [batch, candidate_steps]));
}

Deno.test("the fastest steps of each batch size, in SGLang's format", () => {
  const rows = [
    invented(0, [1, 1, 1], { batch: 8 }),
    invented(3, [0.8, 0.81, 0.79], { batch: 8 }),
    invented(0, [1, 1, 1]),
    invented(3, [1.5, 1.52, 1.48]),
    invented(7, [1.2, 1.21, 1.2]),
  ];
  const config = emitConfig(rows);
  deepEqual(config, {
    1: { candidate_steps: [3], up_hysteresis: 0, down_hysteresis: -0.25, ceiling_coeff: 0 },
    8: { candidate_steps: [0], up_hysteresis: 0, down_hysteresis: -0.25, ceiling_coeff: 0 },
  });
  parseAdaptiveConfig(JSON.parse(JSON.stringify(config)));
});

Deno.test("no drafting where no difference from plain decoding is shown", () => {
  deepEqual(steps([invented(0, [1, 1, 1]), invented(3, [1.4, 0.9, 1.3])]), { 1: [0] });
  const loud = noise([1.3, 0.8, 1.2]);
  deepEqual(steps([invented(0, [1, 1, 1]), loud, invented(3, [1.5, 1.52, 1.48])]), { 1: [0] });
  deepEqual(steps([invented(0, [1]), invented(1, [1.5])]), { 1: [0] }, "one block shows nothing");
});

Deno.test("all cases of a batch size count alike; a setting must be in all of them", () => {
  const far = { batch: 2, depth: 1024 };
  const rows = [
    invented(0, [1, 1, 1], { batch: 2 }),
    invented(1, [1.3, 1.3, 1.3], { batch: 2 }),
    invented(3, [1.6, 1.6, 1.6], { batch: 2 }),
    invented(0, [1, 1, 1], far),
    invented(1, [1.2, 1.2, 1.2], far),
    invented(3, [0.7, 0.7, 0.7], far),
    invented(7, [9, 9, 9], { batch: 2 }),
  ];
  deepEqual(steps(rows), { 2: [1] });
});

Deno.test("policies and the A/A row are not candidates", () => {
  const rows = [invented(0, [1, 1, 1]), invented(2, [1.1, 1.1, 1.1]), adaptive([9, 9, 9])];
  deepEqual(steps(rows), { 1: [2] });
  deepEqual(steps([...rows, noise([1, 1, 1])]), { 1: [2] });
  equal(Object.keys(emitConfig([])).length, 0);
});

Deno.test("a tree that is shown faster is written as one; chains win where they are as fast", () => {
  const tree = (speedups: readonly number[]) =>
    invented(5, speedups, { setting: "tree 5:4:8", setting_kind: "tree", tree: [5, 4, 8] });
  const rows = [invented(0, [1, 1, 1]), invented(3, [1.5, 1.52, 1.48])];
  const config = emitConfig([...rows, tree([1.8, 1.82, 1.79])]);
  deepEqual(config["1"]?.candidate_trees, [[5, 4, 8]]);
  const [slot] = parseAdaptiveConfig(JSON.parse(JSON.stringify(config))).slots;
  deepEqual(slot?.candidateTrees, [{ depth: 5, width: 4, rows: 8 }]);
  deepEqual(slot?.candidateSteps, [5]);
  const alike = emitConfig([...rows, tree([1.5, 1.53, 1.47])]);
  deepEqual([alike["1"]?.candidate_steps, alike["1"]?.candidate_trees], [[3], undefined]);
});
