// Which dispatches of attention a plan has for contexts short and long.

import assert from "node:assert/strict";
import { MOST_OWN_CELLS } from "../../kernels/attention/own_heads.ts";
import { headAttention, headRanges } from "../../src/model/plan/head_attention.ts";
import type { DecoderContext } from "../../src/model/plan/decoder_context.ts";
import { PAGE } from "../../src/model/plan/device_layout.ts";
import type { Dispatch, Operand } from "../../src/gpu/kernel.ts";
import { type Matrix, type Tuning, tuning } from "../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { splitKOf } from "../../kernels/matmul/matmul_shape.ts";

const LIMITS = {
  maxComputeInvocationsPerWorkgroup: 1024,
  maxComputeWorkgroupStorageSize: 49152,
  maxStorageBuffersPerShaderStage: 16,
};
const HARDWARE = tuning(false, LIMITS);
const LARGE: Operand = { buffer: { size: 2 ** 30 } as GPUBuffer };
const [HEADS, KV_HEADS, HEAD_DIM, HIDDEN] = [8, 2, 64, 256];

function matrix(rows: number, cols: number): Matrix {
  return { format: "bf16", rows, cols, lanes: 16, shards: [{ operand: LARGE, first: 0, rows }] };
}

/** The plan of one row whose slot has so many cells at most. */
function planOf(cells: number, window?: number): Dispatch[] {
  const context = {
    config: { hiddenSize: HIDDEN, rmsNormEps: 1e-6 },
    tuning: HARDWARE,
    scratch: {
      x: LARGE,
      q: LARGE,
      qkv: LARGE,
      attentionOutput: LARGE,
      sums: LARGE,
      partial: { sums: LARGE, stats: LARGE },
    },
    ropes: [LARGE],
    pages: LARGE,
    tablePages: cells / PAGE,
    kvDtype: "f32",
  } as unknown as DecoderContext;
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
  return headAttention(
    context,
    { weights, kv: { keys: LARGE, values: LARGE }, label: "layer" },
    {
      input: { x: LARGE, stream: LARGE },
      of: { rows: LARGE, count: 1, perSlot: 1 },
    },
  ).plan;
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
  assert.deepEqual(kernelsAt(planOf(512), 512), OWN);
  const long = planOf(4 * MOST_OWN_CELLS);
  assert.deepEqual(kernelsAt(long, 512), OWN);
  const [first, scores, combine, last] = kernelsAt(long, MOST_OWN_CELLS);
  assert.deepEqual([first, scores, combine, last], [
    ...["layer.qkv", "attention_row", "layer.attention.combine", "layer.o"],
  ]);
  assert.deepEqual(kernelsAt(long, MOST_OWN_CELLS + 1), [
    ...["layer.qkv", "layer.normRope", "attention", "layer.attention.combine", "layer.o"],
  ]);
});

Deno.test("attention of one row with a short window norms its heads however long the context is", () => {
  const plan = planOf(4 * MOST_OWN_CELLS, 512);
  assert.deepEqual(kernelsAt(plan, 4 * MOST_OWN_CELLS)[1], "attention_row");
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
      shards: new Map(of.shards.map((shard) => [shard, { scales: LARGE, halved: true }])),
    },
  });
  const plain = { qkv: wide, bias: undefined, qkNorm: undefined };
  assert.equal(headRanges(plain, onUnits(wide)), splitKOf(wide, HARDWARE));
  assert.ok(splitKOf(wide, HARDWARE) > 1);
  assert.equal(headRanges(plain, HARDWARE), 1);
  assert.equal(headRanges({ ...plain, bias: LARGE }, onUnits(wide)), 1);
  assert.equal(headRanges({ ...plain, qkNorm: LARGE }, onUnits(wide)), 1);
  const narrow = matrix(6144, 4096);
  assert.equal(headRanges({ ...plain, qkv: narrow }, onUnits(narrow)), 1);
  const quantized = { ...wide, format: "q8" } as const;
  assert.equal(headRanges({ ...plain, qkv: quantized }, onUnits(quantized)), 1);
});
