// Which dispatches of attention a plan has for contexts short and long.

import assert from "node:assert/strict";
import { MAX_OWN_CELLS } from "../../kernels/attention/attention_row.ts";
import { attended, projectedHeads, storedHeads } from "../../src/model/graph/decoder.ts";
import { planOf } from "../../src/model/lower/lower.ts";
import { emit } from "../../src/model/lower/emit.ts";
import { onPaper } from "../../src/model/lower/lifetimes.ts";
import { contextOf, LARGE, matrix } from "./layer_context.ts";
import type { Dispatch, Operand } from "../../src/gpu/kernel.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { type Tuning, tuning } from "../../src/gpu/tuning.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { splitKOf } from "../../kernels/matmul/matmul_shape.ts";

const LIMITS = {
  maxComputeInvocationsPerWorkgroup: 1024,
  maxComputeWorkgroupStorageSize: 49152,
  maxStorageBuffersPerShaderStage: 16,
};
const HARDWARE = tuning(false, LIMITS);
const [HEADS, KV_HEADS, HEAD_DIM, HIDDEN] = [8, 2, 64, 256];

/** The plan of one row whose slot has so many cells at most. */
function planAt(cells: number, window?: number): Dispatch[] {
  // Launches that are joined are joined_layer_test's.
  const context = { ...contextOf({ hidden: HIDDEN, cells, tuning: HARDWARE }), handoff: undefined };
  const spec = {
    kind: "heads" as const,
    numHeads: HEADS,
    numKvHeads: KV_HEADS,
    headDim: HEAD_DIM,
    bias: false,
    rope: 0,
    qkNorm: "head" as const,
    scale: 0.1,
    cap: undefined,
    window,
  };
  const qkv = matrix((HEADS + 2 * KV_HEADS) * HEAD_DIM, HIDDEN);
  const o = matrix(HIDDEN, HEADS * HEAD_DIM);
  const weights = { kind: "heads", spec, qkv, bias: undefined, qkNorm: LARGE, o } as const;
  const layer = { kv: { keys: LARGE, values: LARGE }, label: "layer" };
  return planOf(context, (graph) => {
    const input = graph.input("input", 1, HIDDEN, LARGE);
    const of = { rows: LARGE, count: 1, perSlot: 1 };
    const heads = projectedHeads(graph, layer, weights, input);
    const q = storedHeads(graph, context, layer, { weights, heads, of });
    attended(graph, context, layer, { weights, q, of });
  });
}

/** Names of the kernels that run where slots have `cells` cells, without their shapes. */
function kernelsAt(plan: readonly Dispatch[], cells: number): string[] {
  const runs = plan.filter(({ forCells: { from, upTo } = { from: 0, upTo: Infinity } }) =>
    cells >= from && cells <= upTo
  );
  return runs.map(({ label, kernel }) =>
    label.endsWith("attention") ? kernel.name.replace(/_f32.*/, "") : label
  );
}

const OWN = ["layer.qkv", "attention_row", "layer.o"];

Deno.test("attention of one row norms its heads up to so many cells, and beyond they are normed before", () => {
  assert.deepEqual(kernelsAt(planAt(512), 512), OWN);
  const long = planAt(4 * MAX_OWN_CELLS);
  assert.deepEqual(kernelsAt(long, 512), OWN);
  const [first, scores, combine, last] = kernelsAt(long, MAX_OWN_CELLS);
  assert.deepEqual([first, scores, combine, last], [
    ...["layer.qkv", "attention_row", "layer.attention.combine", "layer.o"],
  ]);
  assert.deepEqual(kernelsAt(long, MAX_OWN_CELLS + 1), [
    ...["layer.qkv", "layer.normRope", "attention", "layer.attention.combine", "layer.o"],
  ]);
});

Deno.test("attention of one row with a short window norms its heads however long the context is", () => {
  const plan = planAt(4 * MAX_OWN_CELLS, 512);
  assert.deepEqual(kernelsAt(plan, 4 * MAX_OWN_CELLS)[1], "attention_row");
});

Deno.test("dispatches of an operation that runs for some cells keep their own ranges within these", () => {
  const scores = planAt(512)[1] ?? assert.fail();
  const record = () => [
    scores,
    { ...scores, forCells: { from: 0, upTo: 100 } },
    { ...scores, forCells: { from: 101, upTo: Infinity } },
    { ...scores, forCells: { from: 0, upTo: 50 } },
  ];
  const op = { kind: "call", reads: [], writes: [], record, label: "call", part: "all" } as const;
  const context = contextOf({ hidden: HIDDEN, cells: 512, tuning: HARDWARE });
  const to = { context, at: onPaper, partials: new Map() };
  const plan = emit(to, { ...op, forCells: { from: 80, upTo: 200 } });
  assert.deepEqual(plan.map(({ forCells }) => forCells), [
    { from: 80, upTo: 200 },
    { from: 80, upTo: 100 },
    { from: 101, upTo: 200 },
  ]);
});

Deno.test("wide inputs of heads that are not normed go in ranges of k, on matrix units", () => {
  const wide = matrix(6144, 8192);
  const unit = { m: 16, n: 16, k: 16, lanes: 32 } as MatrixUnit;
  const onUnits = (of: Matrix): Tuning => ({
    ...HARDWARE,
    tensor: {
      unit,
      limits: LIMITS,
      experts: new Map(),
      xScales: LARGE,
      shards: new Map(of.shards.map((shard) => [shard, { scales: LARGE, stored: "f16" }])),
    },
  });
  const ranges = (
    qkv: Matrix,
    tuning: Tuning,
    { bias, qkNorm }: { readonly bias?: Operand; readonly qkNorm?: Operand } = {},
  ): unknown => {
    const spec = {
      kind: "heads" as const,
      numHeads: 32,
      numKvHeads: 8,
      headDim: 128,
      bias: bias !== undefined,
      rope: 0,
      qkNorm: qkNorm ? "head" as const : "none" as const,
      scale: 0.1,
      cap: undefined,
      window: undefined,
    };
    const context = contextOf({ hidden: qkv.cols, cells: 512, tuning });
    const rowOrder = qkNorm ? "stacked" : "rope_halves";
    const weights = {
      kind: "heads" as const,
      spec,
      qkv: { ...qkv, rowOrder } as const,
      bias,
      qkNorm,
      o: qkv,
    };
    const kv = { keys: LARGE, values: LARGE };
    const plan = planOf(context, (graph) => {
      const input = graph.input("input", 4, qkv.cols, LARGE);
      const of = { rows: LARGE, count: 4, perSlot: 4 };
      const layer = { kv, label: "layer" };
      const heads = projectedHeads(graph, layer, weights, input);
      storedHeads(graph, context, layer, { weights, heads, of });
    });
    return plan.find(({ label, constants }) => label === "layer.qkv" && "SPLIT_K" in constants)
      ?.constants["SPLIT_K"];
  };
  assert.equal(ranges(wide, onUnits(wide)), splitKOf(wide, HARDWARE));
  assert.ok(splitKOf(wide, HARDWARE) > 1);
  assert.equal(ranges(wide, HARDWARE), 1);
  assert.equal(ranges(wide, onUnits(wide), { bias: LARGE }), splitKOf(wide, HARDWARE));
  assert.equal(ranges(wide, onUnits(wide), { qkNorm: LARGE }), 1);
  const narrow = matrix(6144, 4096);
  assert.equal(ranges(narrow, onUnits(narrow)), 1);
  const quantized = { ...wide, format: "q8" } as const;
  const scaled = {
    ...quantized,
    shards: [{ operand: LARGE, scales: LARGE, first: 0, rows: 6144 }],
  };
  assert.equal(ranges(scaled, onUnits(scaled)), 1);
});
