import { type Dispatch, dispatch, kernel, type Operand } from "../../src/gpu/kernel.ts";
import type { Tuning } from "../../src/gpu/matrix.ts";
import { foldCounts } from "../fragments/workgroup.ts";
import { shader } from "../shader.ts";

/** How a router's logits become experts and weights; see route.wgsl. */
export interface Routing {
  readonly scores: "softmax" | "sigmoid";
  readonly numExperts: number;
  /** Experts of a row. */
  readonly topK: number;
  /** Divides `numExperts`. */
  readonly groups: number;
  readonly topGroups: number;
  /** Best experts of a group that its score adds up. */
  readonly groupBest: 1 | 2;
  /** Weights of a row add up to `scale`. */
  readonly normalize: boolean;
  readonly scale: number;
}

const HARDWARE_LANES = 128;
const SOFTWARE_LANES = 8;

const BINDINGS = ["logits", "experts", "weights"] as const;
const CONSTANTS = [
  "EXPERTS",
  "STRIDE",
  "TOP_K",
  "GROUPS",
  "TOP_GROUPS",
  "GROUP_BEST",
  "NORMALIZE",
  "SCALE",
  "LANES",
] as const;

const SIGMOID = kernel("route_sigmoid", routeCode("sigmoid"), {
  bindings: [...BINDINGS, "bias"],
  constants: CONSTANTS,
});

/** The sum over lanes is expanded for their number. */
function softmaxKernel(lanes: number) {
  const code = routeCode("softmax", foldCounts(lanes));
  return kernel(`route_softmax_${lanes}`, code, { bindings: BINDINGS, constants: CONSTANTS });
}

function routeCode(scores: Routing["scores"], counts: Record<string, number> = {}): string {
  return shader("experts/route", { slots: { scores: `experts/route_${scores}` }, counts });
}

const SOFTMAX = softmaxKernel(HARDWARE_LANES);
const SOFTMAX_SOFTWARE = softmaxKernel(SOFTWARE_LANES);

/**
 * Records the experts, u32 [rows, topK], and their weights, f32 [rows, topK], of logits [rows,
 * stride]. With sigmoid scores, `bias` [numExperts] is added for the choice.
 */
export function route(
  { logits, bias, experts, weights }: {
    readonly logits: Operand;
    readonly bias: Operand | undefined;
    readonly experts: Operand;
    readonly weights: Operand;
  },
  shape: Routing & {
    readonly rows: number;
    readonly stride: number;
    readonly tuning: Pick<Tuning, "software">;
    readonly label: string;
  },
): Dispatch {
  const { rows, stride, tuning: { software }, label, numExperts } = shape;
  const launch = {
    constants: {
      EXPERTS: numExperts,
      STRIDE: stride,
      TOP_K: shape.topK,
      GROUPS: shape.groups,
      TOP_GROUPS: shape.topGroups,
      GROUP_BEST: shape.groupBest,
      NORMALIZE: Number(shape.normalize),
      SCALE: shape.scale,
      LANES: software ? SOFTWARE_LANES : HARDWARE_LANES,
    },
    workgroups: [rows] as const,
    label,
    work: { bytes: 4 * rows * numExperts, flops: 4 * rows * numExperts },
  };
  if (shape.scores === "softmax") {
    const softmaxOf = software ? SOFTMAX_SOFTWARE : SOFTMAX;
    return dispatch(softmaxOf, { buffers: { logits, experts, weights }, ...launch });
  }
  if (!bias) throw new Error(`${label}: sigmoid scores need a bias`);
  return dispatch(SIGMOID, { buffers: { logits, experts, weights, bias }, ...launch });
}
