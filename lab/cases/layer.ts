/** All dispatches of a layer one after the other: what the barriers between them cost counts. */
import type { NormInput } from "../../kernels/norm/rms_norm.ts";
import type { Operand, Plan } from "../../src/gpu/kernel.ts";
import { partialWords } from "../../kernels/attention/attention.ts";
import { headWords } from "../../kernels/attention/relayed_heads.ts";
import { relayWords, sumWords } from "../../kernels/matmul/relay/relay.ts";
import { ropeTable } from "../../src/model/plan/rope.ts";
import {
  attentionBlock,
  type Block,
  firstOfAttention,
  mlpBlock,
  type PlacedLayer,
} from "../../src/model/plan/decoder.ts";
import { enterBranch } from "../../src/model/plan/branch_input.ts";
import type { DecoderContext, RowsOf } from "../../src/model/plan/decoder_context.ts";
import { PAGE } from "../../src/model/plan/device_layout.ts";
import type { ModelConfig } from "../../src/model/config/types.ts";
import { splitKOf } from "../../kernels/matmul/matmul_shape.ts";
import { KV_BYTES } from "../../src/gpu/kv.ts";
import { MOST_SPLIT_K, tuning, WEIGHT_BYTES, type WeightFormat } from "../../src/gpu/matrix.ts";
import { blockTable, packRows } from "../../tests/kernels/rows.ts";
import type { Allocations } from "../allocations.ts";
import { copiesOf, type MicroCase } from "../case.ts";

/** Of a model with norms of q and k. */
export interface Sizes {
  readonly name: string;
  readonly hidden: number;
  /** Of the MLP, or of an expert. */
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
/** For adapters that a processor plays. */
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
  /** Of each slot. */
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
      return copiesOf(weights * WEIGHT_BYTES[format], of).map((i) => {
        const label = `layers.${i}`;
        const layer = layerOf(of, sizes, { format, label, slots });
        const weight = of.random(hidden);
        const { x, sums } = context.scratch;
        const from = { x, sums, splitK: splitKOf(layer.mlp.down, context.tuning) };
        return layerBlock(context, layer, { from, weight, seen }).plan;
      });
    },
  };
}

/** A layer behind the stream of the one before. */
function layerBlock(
  context: DecoderContext,
  layer: PlacedLayer,
  { from, weight, seen }: {
    readonly from: NormInput;
    /** Of its first norm. */
    readonly weight: Operand;
    readonly seen: RowsOf;
  },
): Block {
  const rows = seen.count;
  const entry = { from, weight, first: firstOfAttention(layer) };
  const entered = enterBranch(context, entry, rows, `${layer.label}.inputNorm`);
  const attention = attentionBlock(context, layer, entered.input, seen);
  const mlp = mlpBlock(context, layer, { before: attention, rows, end: "sums" });
  return { plan: [...entered.plan, ...mlp.plan], stream: mlp.stream };
}

/** A plan for each of the layers, which follow each other as in a forward. */
export function layerPlans(
  context: DecoderContext,
  layers: readonly PlacedLayer[],
  { weights, seen }: {
    /** Of the layers' first norms. */
    readonly weights: readonly Operand[];
    readonly seen: RowsOf;
  },
): Plan[] {
  let from: NormInput = { x: context.scratch.x };
  return layers.map((layer, i) => {
    const { plan, stream } = layerBlock(context, layer, {
      from,
      seen,
      weight: weights[i] as Operand,
    });
    from = stream;
    return plan;
  });
}

/** Rows of sequences, those of one follow each other. */
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
  const shape = { heads, kvHeads, headDim, tablePages, kvDtype: "f32" } as const;
  const words = partialWords(shape, rows, info);
  const floats = (cols: number) => from.random((rows + 8) * cols);
  const rope = { theta: 1e6, width: headDim, scaling: { kind: "default" } } as const;
  const table = ropeTable(rope, headDim, { positions: CONTEXT, context: CONTEXT });
  return {
    config: { hiddenSize: hidden, rmsNormEps: 1e-6 } as ModelConfig,
    tuning: { ...tuning(info.software, limits, info.backend), subgroup: info.subgroup },
    scratch: {
      x: floats(hidden),
      otherX: floats(hidden),
      normed: floats(hidden),
      qkv: floats((heads + 2 * kvHeads) * headDim),
      q: floats(heads * headDim),
      partial: { sums: from.random(words.sums), stats: from.random(words.stats) },
      attentionOutput: floats(heads * headDim),
      act: floats(intermediate),
      sums: floats(MOST_SPLIT_K * Math.max(hidden, (heads + 2 * kvHeads) * headDim)),
      relay: {
        act: from.words(new Uint32Array(relayWords(intermediate))),
        heads: from.words(
          new Uint32Array(Math.max(headWords((heads + 2 * kvHeads) * headDim), sumWords(hidden))),
        ),
        sums: floats(MOST_SPLIT_K * hidden),
      },
    },
    ropes: [from.words(Uint32Array.from(new Uint32Array(table.buffer)))],
    pages: from.words(Uint32Array.from(blockTable(slots, tablePages))),
    tablePages,
    kvDtype: "f32",
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
      gateUp: from.matrix(2 * intermediate, hidden, format),
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
    norms: { attention: undefined, post: from.random(hidden), mlp: undefined },
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
