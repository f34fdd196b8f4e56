// Which dispatches a layer of one row has where its launches are joined, for contexts short and long.

import assert from "node:assert/strict";
import { enterBranch } from "../../src/model/plan/branch_input.ts";
import {
  attentionBlock,
  firstOfAttention,
  mlpBlock,
  type PlacedLayer,
} from "../../src/model/plan/decoder.ts";
import type { DecoderContext } from "../../src/model/plan/decoder_context.ts";
import { PAGE } from "../../src/model/plan/device_layout.ts";
import type { Operand } from "../../src/gpu/kernel.ts";
import { type Matrix, type Tuning, tuning } from "../../src/gpu/matrix.ts";

const HARDWARE = tuning(false, {
  maxComputeInvocationsPerWorkgroup: 1024,
  maxComputeWorkgroupStorageSize: 49152,
  maxStorageBuffersPerShaderStage: 20,
});
const LARGE: Operand = { buffer: { size: 2 ** 30 } as GPUBuffer };
const [HEADS, KV_HEADS, HEAD_DIM, HIDDEN, INTERMEDIATE] = [8, 4, 32, 256, 704];
const CELLS = 2048;

function matrix(rows: number, cols: number): Matrix {
  return { format: "bf16", rows, cols, lanes: 16, shards: [{ operand: LARGE, first: 0, rows }] };
}

/** @param normed whether attention's output is, as in Gemma. */
function layerOf(normed: boolean): PlacedLayer {
  const spec = {
    kind: "heads" as const,
    numHeads: HEADS,
    numKvHeads: KV_HEADS,
    headDim: HEAD_DIM,
    bias: false,
    rope: 0,
    qkNorm: "none" as const,
    scale: 0.1,
    cap: undefined,
    window: undefined,
  };
  const mlp = { kind: "dense", activation: "silu", intermediateSize: INTERMEDIATE } as const;
  return {
    attention: {
      kind: "heads",
      spec,
      bias: undefined,
      qkNorm: undefined,
      qkv: matrix((HEADS + 2 * KV_HEADS) * HEAD_DIM, HIDDEN),
      o: matrix(HIDDEN, HEADS * HEAD_DIM),
    },
    mlp: {
      kind: "dense",
      spec: mlp,
      gateUp: matrix(2 * INTERMEDIATE, HIDDEN),
      down: matrix(HIDDEN, INTERMEDIATE),
    },
    norms: { attention: normed ? LARGE : undefined, post: LARGE, mlp: undefined },
    kv: { keys: LARGE, values: LARGE },
    label: "layer",
  };
}

/** Labels of what runs where slots have `cells` cells. */
function labelsAt(
  cells: number,
  { count = 1, normed = false, tuning = HARDWARE }: {
    readonly count?: number;
    readonly normed?: boolean;
    readonly tuning?: Tuning;
  } = {},
): string[] {
  const [x, otherX] = [{ ...LARGE }, { ...LARGE }];
  const context = {
    config: { hiddenSize: HIDDEN, rmsNormEps: 1e-6 },
    tuning,
    scratch: {
      x,
      otherX,
      q: LARGE,
      qkv: LARGE,
      attentionOutput: LARGE,
      sums: LARGE,
      act: LARGE,
      normed: LARGE,
      relay: { act: LARGE, heads: LARGE, sums: LARGE },
      partial: { sums: LARGE, stats: LARGE },
    },
    ropes: [LARGE],
    pages: LARGE,
    tablePages: CELLS / PAGE,
    kvDtype: "f32",
  } as unknown as DecoderContext;
  const layer = layerOf(normed);
  const of = { rows: LARGE, count, perSlot: count };
  const from = { x, sums: LARGE, splitK: 1 };
  const entry = { from, weight: LARGE, first: firstOfAttention(layer) };
  const entered = enterBranch(context, entry, count, "layer.inputNorm");
  const before = attentionBlock(context, layer, entered.input, of);
  const { plan } = mlpBlock(context, layer, { before, rows: count, end: "sums" });
  return [...entered.plan, ...plan]
    .filter(({ forCells: { from, upTo } = { from: 0, upTo: Infinity } }) =>
      cells >= from && cells <= upTo
    ).map(({ label }) => label.replace("layer.", ""));
}

Deno.test("a layer of one row is two dispatches where slots have few cells", () => {
  assert.deepEqual(labelsAt(1024), ["attention", "mlp"]);
  assert.deepEqual(labelsAt(1025), ["attention", "attention.combine", "o", "mlp"]);
});

Deno.test("`o` goes alone where its sums are normed, or a kernel has too few storage buffers", () => {
  assert.deepEqual(labelsAt(1024, { normed: true }).slice(0, 2), ["attention", "o"]);
  assert.deepEqual(labelsAt(1024, { tuning: { ...HARDWARE, storageBuffers: 13 } }).slice(-2), [
    ...["o", "mlp"],
  ]);
});

Deno.test("more rows have dispatches of their own", () => {
  assert.deepEqual(labelsAt(1024, { count: 2 }).slice(-3), ["o", "gateUp", "down"]);
});
