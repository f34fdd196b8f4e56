import type { Routing } from "../../kernels/experts/route.ts";
import type { WeightFormat } from "../../src/gpu/weight_format.ts";
import type { MixtureWeights } from "../../src/model/weights/layer_weights.ts";
import type { Allocations } from "../allocations.ts";

/** Widths of a mixture that replaces a dense MLP. */
export interface ExpertSizes {
  readonly hidden: number;
  /** Width of an expert. */
  readonly intermediate: number;
  readonly numExperts: number;
  /** Routed experts of a row. */
  readonly topK: number;
  /** Experts that every row has, stacked behind the routed ones; default 0. */
  readonly shared?: number;
}

/** Random weights of a mixture. */
export function mixtureMlp(
  of: Allocations,
  { hidden, intermediate, numExperts, topK, shared = 0 }: ExpertSizes,
  { format, normalize }: { readonly format: WeightFormat; readonly normalize: boolean },
): MixtureWeights {
  const routing: Routing = {
    scores: "softmax",
    numExperts,
    topK,
    normalize,
    scale: 1,
    groups: 1,
    topGroups: 1,
    groupBest: 1,
  };
  const stack = numExperts + shared;
  return {
    kind: "mixture",
    spec: { kind: "mixture", routing, intermediateSize: intermediate, shared: undefined },
    router: of.matrix(numExperts, hidden, "bf16"),
    bias: undefined,
    gateUp: of.matrix(stack * 2 * intermediate, hidden, format),
    down: of.matrix(stack * hidden, intermediate, format),
    stacked: shared,
    shared: undefined,
  };
}
