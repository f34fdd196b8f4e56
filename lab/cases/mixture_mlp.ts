import { tileWords } from "../../kernels/experts/experts.ts";
import type { Routing } from "../../kernels/experts/route.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import type { Tuning, WeightFormat } from "../../src/gpu/matrix.ts";
import type { PlacedLayer } from "../../src/model/plan/decoder.ts";
import type { DecoderContext } from "../../src/model/plan/decoder_context.ts";
import type { Allocations } from "../allocations.ts";

/** Widths of a mixture in place of a dense MLP. */
export interface ExpertSizes {
  readonly hidden: number;
  /** Of an expert. */
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
): Extract<PlacedLayer["mlp"], { kind: "mixture" }> {
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

/** What the mixture of some rows keeps between its dispatches. */
export function mixtureScratch(
  of: Allocations,
  { hidden, intermediate, shared = 0, ...sizes }: ExpertSizes,
  { rows, tuning, unit }: {
    readonly rows: number;
    readonly tuning: Tuning;
    readonly unit?: MatrixUnit;
  },
): Pick<DecoderContext["scratch"], "act" | "mixture"> {
  const [numExperts, topK] = [sizes.numExperts + shared, sizes.topK + shared];
  return {
    act: of.random(rows * topK * intermediate),
    mixture: {
      logits: of.random(rows * numExperts),
      experts: of.random(rows * topK),
      weights: of.random(rows * topK),
      tiles: of.random(tileWords({ rows, topK, numExperts }, tuning, unit)),
      outputs: of.random(rows * topK * hidden),
    },
  };
}
