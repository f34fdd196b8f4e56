// Which dispatches a layer of one row has where its launches are joined, for contexts short and long.

import assert from "node:assert/strict";
import { decoderLayer, type PlacedLayer } from "../../src/model/graph/decoder.ts";
import { Graph, type Value } from "../../src/model/graph/graph.ts";
import { lower } from "../../src/model/lower/lower.ts";
import { type Tuning, tuning } from "../../src/gpu/tuning.ts";
import { contextOf, LARGE, matrix } from "./layer_context.ts";

const HARDWARE = tuning(false, {
  maxComputeInvocationsPerWorkgroup: 1024,
  maxComputeWorkgroupStorageSize: 49152,
  maxStorageBuffersPerShaderStage: 20,
});
const [HEADS, KV_HEADS, HEAD_DIM, HIDDEN, INTERMEDIATE] = [8, 4, 32, 256, 704];
const CELLS = 2048;

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
      qkv: matrix((HEADS + 2 * KV_HEADS) * HEAD_DIM, HIDDEN, "rope_halves"),
      o: matrix(HIDDEN, HEADS * HEAD_DIM),
    },
    mlp: {
      kind: "dense",
      spec: mlp,
      gateUp: matrix(2 * INTERMEDIATE, HIDDEN, "gate_up"),
      down: matrix(HIDDEN, INTERMEDIATE),
    },
    norms: { afterAttention: normed ? LARGE : undefined, beforeMlp: LARGE, afterMlp: undefined },
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
  const context = contextOf({ hidden: HIDDEN, cells: CELLS, tuning });
  const layer = layerOf(normed);
  const of = { rows: LARGE, count, perSlot: count };
  const graph = new Graph("layer");
  const [before, branch] = ["x", "branch"].map((name) =>
    graph.input(name, count, HIDDEN, { ...LARGE })
  ) as [Value, Value];
  const x = graph.add(before, branch, "before");
  const norm = { weight: LARGE, eps: 1e-6 };
  const input = graph.norm(x, norm, "layer.inputNorm");
  const out = decoderLayer(graph, context, layer, { x, input, of });
  graph.begin("next");
  graph.norm(out, norm, "next");
  return lower(graph, context).part("layer")
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
