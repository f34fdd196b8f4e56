/** All dispatches of a mixture's layer one after the other: what the barriers between them cost counts. */
import { tileWords } from "../../shaders/experts/experts.ts";
import type { NormInput } from "../../shaders/norm/rms_norm.ts";
import type { Routing } from "../../shaders/router/route.ts";
import { attentionBlock, firstOfAttention, mlpBlock } from "../../src/model/plan/decoder.ts";
import { enterBranch } from "../../src/model/plan/branch_input.ts";
import type { DecoderContext } from "../../src/model/plan/decoder_context.ts";
import type { Plan } from "../../src/gpu/kernel.ts";
import type { WeightFormat } from "../../src/gpu/matrix.ts";
import type { Allocations } from "../allocations.ts";
import type { MicroCase } from "../case.ts";
import { attentionOf, CONTEXT, contextOf, rowsOf, type Sizes } from "./layer.ts";

interface MixtureSizes extends Sizes {
  readonly numExperts: number;
  readonly topK: number;
}

const QWEN3_30B: MixtureSizes = {
  ...{ name: "qwen3-30b", hidden: 2048, intermediate: 768, numExperts: 128, topK: 8 },
  ...{ heads: 32, kvHeads: 4, headDim: 128 },
};
/** For adapters that a processor plays. */
const EIGHTH: MixtureSizes = {
  ...{ name: "qwen3-30b-eighth", hidden: 256, intermediate: 128, numExperts: 16, topK: 2 },
  ...{ heads: 8, kvHeads: 2, headDim: 64 },
};

/** Layers that follow each other: none finds its weights in a cache. */
const LAYERS = 4;

interface Run {
  readonly rows: number;
  readonly format: WeightFormat;
}

function mixtureContext(from: Allocations, sizes: MixtureSizes, rows: number): DecoderContext {
  const { hidden, intermediate, numExperts, topK } = sizes;
  const context = contextOf(from, sizes, { rows, slots: 1 });
  const words = tileWords({ rows, topK, numExperts }, context.tuning);
  return {
    ...context,
    scratch: {
      ...context.scratch,
      act: from.random(rows * topK * intermediate),
      mixture: {
        logits: from.random(rows * numExperts),
        experts: from.random(rows * topK),
        weights: from.random(rows * topK),
        tiles: from.random(words),
        outputs: from.random(rows * topK * hidden),
      },
    },
  };
}

/** A layer's plan after that of the one before, whose stream is `from`. */
function layerPlan(
  of: Allocations,
  context: DecoderContext,
  sizes: MixtureSizes,
  { rows, format, label, from }: Run & { readonly label: string; readonly from: NormInput },
): { readonly plan: Plan; readonly stream: NormInput } {
  const { hidden, intermediate, numExperts, topK } = sizes;
  const routing: Routing = {
    ...{ scores: "softmax", numExperts, topK, normalize: true, scale: 1 },
    ...{ groups: 1, topGroups: 1, groupBest: 1 },
  };
  const layer = {
    ...attentionOf(of, sizes, { format, slots: 1 }),
    mlp: {
      kind: "mixture",
      spec: { kind: "mixture", routing, intermediateSize: intermediate, shared: undefined },
      router: of.matrix(numExperts, hidden, "bf16"),
      bias: undefined,
      gateUp: of.matrix(numExperts * 2 * intermediate, hidden, format),
      down: of.matrix(numExperts * hidden, intermediate, format),
      ...{ stacked: 0, shared: undefined },
    },
    label,
  } as const;
  const seen = { rows: rowsOf(of, rows, 1), count: rows, perSlot: rows };
  const entry = { from, weight: of.random(hidden), first: firstOfAttention(layer) };
  const entered = enterBranch(context, entry, rows, `${label}.inputNorm`);
  const attention = attentionBlock(context, layer, entered.input, seen);
  const mlp = mlpBlock(context, layer, { stream: attention.stream, rows, end: "sums" });
  return { plan: [...entered.plan, ...attention.plan, ...mlp.plan], stream: mlp.stream };
}

/** Layers of one forward, each with weights of its own. */
export function mixtureLayers(of: Allocations, sizes: MixtureSizes, run: Run): Plan[] {
  const context = mixtureContext(of, sizes, run.rows);
  const plans: Plan[] = [];
  let from: NormInput = { x: context.scratch.x };
  for (let i = 0; i < LAYERS; i++) {
    const made = layerPlan(of, context, sizes, { ...run, label: `layers.${i}`, from });
    plans.push(made.plan);
    from = made.stream;
  }
  return plans;
}

export function mixtureSizes(software: boolean): MixtureSizes {
  return software ? EIGHTH : QWEN3_30B;
}

/** One run is a layer. */
export function mixtureLayerCases(software: boolean): MicroCase[] {
  const sizes = mixtureSizes(software);
  return (["bf16", "q8"] as const).flatMap((format) =>
    [1, 2, 4, 8].map((rows) => ({
      name: `layer/${sizes.name}/${format}/${rows}`,
      context: CONTEXT,
      make: (of: Allocations) => mixtureLayers(of, sizes, { rows, format }),
    }))
  );
}
