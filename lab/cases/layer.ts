/** All dispatches of a layer, in order, so that the time includes the barriers between them. */
import type { Operand, Plan } from "../../src/gpu/kernel.ts";
import { headWords } from "../../kernels/attention/handoff_heads.ts";
import { handoffWords, sumWords } from "../../kernels/matmul/handoff/handoff.ts";
import { ropeTable } from "../../src/model/weights/rope_table.ts";
import type { DecoderContext } from "../../src/model/graph/context.ts";
import { decoderLayer, type PlacedLayer } from "../../src/model/graph/decoder.ts";
import { Graph, type RowsOf } from "../../src/model/graph/graph.ts";
import { lower } from "../../src/model/lower/lower.ts";
import { PAGE } from "../../src/model/device_layout.ts";
import type { ModelConfig } from "../../src/model/config/types.ts";
import { splitKOf } from "../../kernels/matmul/matmul_shape.ts";
import { KV_BYTES } from "../../src/gpu/kv.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { WEIGHT_BYTES, type WeightFormat } from "../../src/gpu/weight_format.ts";
import { blockTable, packRows } from "../../tests/kernels/rows.ts";
import type { Allocations } from "../allocations.ts";
import { copiesOf, type MicroCase } from "../case.ts";

/** Sizes of a model that norms q and k. */
export interface Sizes {
  readonly name: string;
  readonly hidden: number;
  /** Width of the MLP, or of an expert. */
  readonly intermediate: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
}

const QWEN3_06B: Sizes = {
  name: "qwen3-0.6b",
  hidden: 1024,
  intermediate: 3072,
  heads: 16,
  kvHeads: 8,
  headDim: 128,
};
/** For software adapters. */
const EIGHTH: Sizes = {
  name: "qwen3-0.6b-eighth",
  hidden: 128,
  intermediate: 384,
  heads: 4,
  kvHeads: 2,
  headDim: 64,
};

export const CONTEXT = 512;

interface Run {
  /** Rows of each slot. */
  readonly perSlot: number;
  readonly slots: number;
  readonly format: WeightFormat;
}

function layerCase(sizes: Sizes, { perSlot, slots, format }: Run): MicroCase {
  const rows = perSlot * slots;
  const { hidden, intermediate, heads, kvHeads, headDim } = sizes;
  const qkvRows = (heads + 2 * kvHeads) * headDim;
  const weights = qkvRows * hidden + heads * headDim * hidden + 3 * hidden * intermediate;
  return {
    name: `layer/${sizes.name}/${format}/${slots > 1 ? `${slots}x` : ""}${perSlot}`,
    context: CONTEXT,
    make(of) {
      const context = contextOf(of, sizes, { rows, slots });
      const seen = { rows: rowsOf(of, perSlot, slots), count: rows, perSlot };
      const layers = copiesOf(weights * WEIGHT_BYTES[format], of).map((i) =>
        layerOf(of, sizes, { format, label: `layers.${i}`, slots })
      );
      const parts = splitKOf((layers[0] as typeof layers[number]).mlp.down, context.tuning);
      return layerPlans(context, layers, {
        x: of.random(rows * hidden),
        sums: { at: of.random(parts * rows * hidden), parts },
        weights: layers.map(() => of.random(hidden)),
        seen,
      });
    },
  };
}

/** One plan for each layer. The layers follow each other as in a forward. */
export function layerPlans(
  context: DecoderContext,
  layers: readonly PlacedLayer[],
  { x: stream, sums, weights, seen }: {
    /** The residual stream before the layers, [rows, hidden]. */
    readonly x: Operand;
    /**
     * Partial sums that the first norm adds to the stream, as a previous layer would leave them: [parts, rows, hidden].
     * If absent, the first norm adds nothing.
     */
    readonly sums?: { readonly at: Operand; readonly parts: number };
    /** The weights of each layer's first norm. */
    readonly weights: readonly Operand[];
    readonly seen: RowsOf;
  },
): Plan[] {
  const { hiddenSize, rmsNormEps: eps } = context.config;
  const graph = new Graph("0");
  let x = graph.input("x", seen.count, hiddenSize, stream);
  if (sums) x = graph.add(x, { ...x, label: "sums", ...sums }, "before");
  for (const [i, layer] of layers.entries()) {
    graph.begin(String(i));
    const input = graph.norm(x, { weight: weights[i] as Operand, eps }, `${layer.label}.inputNorm`);
    x = decoderLayer(graph, context, layer, { x, input, of: seen });
  }
  // The last layer also leaves its partial sums for a norm to add.
  graph.begin("end");
  graph.norm(x, { weight: weights[0] as Operand, eps }, "norm");
  const lowered = lower(graph, context);
  return layers.map((_, i) => lowered.part(String(i)));
}

/** Packed `Row`s of several sequences. The rows of one sequence are consecutive. */
export function rowsOf(from: Allocations, perSlot: number, slots: number): Operand {
  const rows = Array.from({ length: perSlot * slots }, (_, i) => {
    const position = CONTEXT - perSlot + i % perSlot;
    return { slot: Math.floor(i / perSlot), position, cell: position, base: position + 1 };
  });
  return from.words(new Uint32Array(packRows(rows)));
}

export function contextOf(
  from: Allocations,
  sizes: Sizes,
  { rows, slots }: { readonly rows: number; readonly slots: number },
): DecoderContext {
  const { hidden, intermediate, heads, kvHeads, headDim } = sizes;
  const { info, limits } = from.gpu;
  const tablePages = CONTEXT / PAGE;
  const rope = { theta: 1e6, width: headDim, scaling: { kind: "default" } } as const;
  const table = ropeTable(rope, headDim, { positions: CONTEXT, context: CONTEXT });
  return {
    config: { hiddenSize: hidden, rmsNormEps: 1e-6, residualScale: 1 } as ModelConfig,
    tuning: { ...tuning(info.software, limits, info.backend), subgroup: info.subgroup },
    ropes: [from.words(Uint32Array.from(new Uint32Array(table.buffer)))],
    pages: from.words(Uint32Array.from(blockTable(slots, tablePages))),
    tablePages,
    kvDtype: "f32",
    widestRows: rows,
    scratch: from.scratch(),
    handoff: {
      act: from.words(new Uint32Array(handoffWords(intermediate))),
      heads: from.words(
        new Uint32Array(Math.max(headWords((heads + 2 * kvHeads) * headDim), sumWords(hidden))),
      ),
    },
  };
}

interface Placed {
  readonly format: WeightFormat;
  readonly slots: number;
  readonly label: string;
}

function layerOf(from: Allocations, sizes: Sizes, { label, ...placed }: Placed) {
  const { hidden, intermediate } = sizes;
  const { format } = placed;
  const mlp = { kind: "dense", activation: "silu", intermediateSize: intermediate } as const;
  return {
    ...attentionOf(from, sizes, placed),
    mlp: {
      kind: "dense",
      spec: mlp,
      gateUp: from.matrix(2 * intermediate, hidden, format, "gate_up"),
      down: from.matrix(hidden, intermediate, format),
    },
    label,
  } as const;
}

/** A layer without its MLP. */
export function attentionOf(
  from: Allocations,
  sizes: Sizes,
  { format, slots }: Pick<Placed, "format" | "slots">,
): Omit<PlacedLayer, "mlp" | "label"> {
  const { hidden, heads, kvHeads, headDim } = sizes;
  const cells = slots * CONTEXT * kvHeads * headDim * KV_BYTES.f32 / 4;
  const spec = {
    kind: "heads",
    numHeads: heads,
    numKvHeads: kvHeads,
    headDim,
    bias: false,
    rope: 0,
    qkNorm: "head",
    scale: 1 / Math.sqrt(headDim),
    cap: undefined,
    window: undefined,
  } as const;
  const qkv = from.matrix((heads + 2 * kvHeads) * headDim, hidden, format);
  return {
    attention: {
      kind: "heads",
      spec,
      qkv,
      bias: undefined,
      qkNorm: from.random(2 * headDim),
      o: from.matrix(hidden, heads * headDim, format),
    },
    norms: { afterAttention: undefined, beforeMlp: from.random(hidden), afterMlp: undefined },
    kv: { keys: from.random(cells), values: from.random(cells) },
  } as const;
}

export function layerCases(software: boolean): MicroCase[] {
  const sizes = software ? EIGHTH : QWEN3_06B;
  return (["bf16", "q8", "q4"] as const).flatMap((format) =>
    [[1, 1], [2, 1], [4, 1], [8, 1], [1, 8], [1, 16]].map(([perSlot = 1, slots = 1]) =>
      layerCase(sizes, { perSlot, slots, format })
    )
  );
}
