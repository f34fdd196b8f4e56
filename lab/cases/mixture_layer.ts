/** All dispatches of a mixture's layer, in order, so that the time includes the barriers between them. */
import type { Plan } from "../../src/gpu/kernel.ts";
import type { WeightFormat } from "../../src/gpu/weight_format.ts";
import type { Allocations } from "../allocations.ts";
import type { MicroCase } from "../case.ts";
import { attentionOf, CONTEXT, contextOf, layerPlans, rowsOf, type Sizes } from "./layer.ts";
import { type ExpertSizes, mixtureMlp } from "./mixture_mlp.ts";

type MixtureSizes = Sizes & ExpertSizes;

const QWEN3_30B: MixtureSizes = {
  name: "qwen3-30b",
  hidden: 2048,
  intermediate: 768,
  numExperts: 128,
  topK: 8,
  heads: 32,
  kvHeads: 4,
  headDim: 128,
};
/** For software adapters. */
const EIGHTH: MixtureSizes = {
  name: "qwen3-30b-eighth",
  hidden: 256,
  intermediate: 128,
  numExperts: 16,
  topK: 2,
  heads: 8,
  kvHeads: 2,
  headDim: 64,
};

/** Layers in a row: enough that none finds its weights in a cache. */
const LAYERS = 4;

/** The layers of one forward, each with its own weights. */
export function mixtureLayers(
  of: Allocations,
  sizes: MixtureSizes,
  { rows, format }: { readonly rows: number; readonly format: WeightFormat },
): Plan[] {
  const layers = Array.from({ length: LAYERS }, (_, i) => ({
    ...attentionOf(of, sizes, { format, slots: 1 }),
    mlp: mixtureMlp(of, sizes, { format, normalize: true }),
    label: `layers.${i}`,
  }));
  return layerPlans(contextOf(of, sizes, { rows, slots: 1 }), layers, {
    x: of.random(rows * sizes.hidden),
    weights: layers.map(() => of.random(sizes.hidden)),
    seen: { rows: rowsOf(of, rows, 1), count: rows, perSlot: rows },
  });
}

export function mixtureSizes(software: boolean): MixtureSizes {
  return software ? EIGHTH : QWEN3_30B;
}

/** Cases in which one run is one layer. */
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
