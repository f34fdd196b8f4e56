import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import type { Tuning } from "../../src/gpu/tuning.ts";
import { kernelOf } from "../shader.ts";

/** How a router's logits become experts and weights; see lib/expert_choice.wgsl. */
export interface Routing {
  readonly scores: "softmax" | "biased_softmax" | "sigmoid";
  readonly numExperts: number;
  /** Experts of a row. */
  readonly topK: number;
  /** Divides `numExperts`. */
  readonly groups: number;
  readonly topGroups: number;
  /** How many of a group's best experts are added up to its score. */
  readonly groupBest: 1 | 2;
  /** Whether the weights of a row are normalized to add up to `scale`. */
  readonly normalize: boolean;
  readonly scale: number;
}

const HARDWARE_LANES = 128;
const SOFTWARE_LANES = 8;

/** Logits that a lane of lib/expert_choice.wgsl compares without a branch in between. */
const UNROLLED = 8;

/** Experts that every row has, behind those that are chosen. */
interface SharedExperts {
  /** Default 0. */
  readonly shared?: number | undefined;
  /** Whether their weight is the sigmoid of the row's logit that follows those of the experts; default: it is 1. */
  readonly sharedGate?: boolean | undefined;
}

/** The constants of lib/expert_choice.wgsl. */
function choiceConstants(
  routing: Routing,
  { lanes, shared = 0, sharedGate = false }: SharedExperts & { readonly lanes: number },
): Readonly<Record<string, number>> {
  const { numExperts } = routing;
  const segments = Math.max(
    1,
    Math.min(Math.floor(lanes / numExperts), Math.ceil(numExperts / UNROLLED)),
  );
  const segment = UNROLLED * Math.ceil(numExperts / segments / UNROLLED);
  return {
    EXPERTS: numExperts,
    TOP_K: routing.topK,
    ADDED: shared,
    SHARED_GATE: Number(sharedGate),
    EXPERT_GROUPS: routing.groups,
    TOP_GROUPS: routing.topGroups,
    GROUP_BEST: routing.groupBest,
    NORMALIZE: Number(routing.normalize),
    SCALE: routing.scale,
    CHOICE_LANES: lanes,
    SEGMENTS: segments,
    SEGMENT: segment,
    PADDED: segments * segment,
  };
}

/** What lib/expert_choice.wgsl takes. */
export interface ChoiceParameters {
  readonly scores: Routing["scores"];
  /** Number of the binding of the bias, where scores are biased. */
  readonly BIAS: number;
  /** Whether experts have factors of their own. */
  readonly FACTORS: boolean;
}

function routeKernel(scores: Routing["scores"], lanes: number, FACTORS: boolean): Kernel {
  const name = `route_${scores}_${lanes}${FACTORS ? "_factors" : ""}`;
  return kernelOf<ChoiceParameters>("experts/route")({ scores, BIAS: 3, FACTORS }, { name });
}

/**
 * Records the experts, u32 [rows, topK + shared], and their weights, f32 [rows, topK + shared], of
 * logits [rows, stride]. Where scores are biased, `bias` [numExperts] is added for the choice. An expert's weight is
 * multiplied by its factor, [numExperts], where there are any. The `shared` experts are those from numExperts on.
 */
export function route(
  { logits, bias, factors, experts, weights }: {
    readonly logits: Operand;
    readonly bias: Operand | undefined;
    readonly factors?: Operand | undefined;
    readonly experts: Operand;
    readonly weights: Operand;
  },
  shape: Routing & SharedExperts & {
    readonly rows: number;
    readonly stride: number;
    readonly tuning: Pick<Tuning, "software">;
    readonly label: string;
  },
): Dispatch {
  const { rows, stride, shared, sharedGate, tuning: { software }, label, numExperts } = shape;
  const lanes = software ? SOFTWARE_LANES : HARDWARE_LANES;
  return dispatch(routeKernel(shape.scores, lanes, factors !== undefined), {
    buffers: {
      logits,
      experts,
      shares: weights,
      ...biasOf(shape, bias, label),
      ...factors ? { factors } : {},
    },
    constants: { ...choiceConstants(shape, { lanes, shared, sharedGate }), STRIDE: stride },
    workgroups: [rows],
    label,
    work: { bytes: 4 * rows * numExperts, flops: 4 * rows * numExperts },
  });
}

/** Whether experts are chosen by their scores and a bias. */
export function isBiased({ scores }: Routing): boolean {
  return scores !== "softmax";
}

/** The bias as a buffer of the kernel, where it has one. */
function biasOf(
  routing: Routing,
  bias: Operand | undefined,
  label: string,
): Record<string, Operand> {
  if (!isBiased(routing)) return {};
  if (!bias) throw new Error(`${label}: ${routing.scores} scores need a bias`);
  return { bias };
}

/** The logits by which workgroups choose their experts, and what one workgroup per row stores besides `experts`. */
export interface ExpertChoice {
  readonly routing: Routing;
  /** [rows, stride] */
  readonly logits: Operand;
  readonly stride: number;
  /** Of the chosen ones, f32 [rows, topK]. */
  readonly weights: Operand;
  /** What experts' weights are multiplied by, [numExperts]. */
  readonly factors?: Operand | undefined;
  /** Of the shared experts, see `SharedExperts`. */
  readonly sharedGate?: boolean | undefined;
}

/**
 * Constants of lib/expert_jobs.wgsl where it chooses, of workgroups of `lanes` invocations; `shared` experts follow the
 * chosen ones.
 */
export function choosingConstants(
  { routing, stride, sharedGate }: ExpertChoice,
  { jobs, lanes, shared = 0 }: {
    readonly jobs: number;
    readonly lanes: number;
    readonly shared?: number | undefined;
  },
): Readonly<Record<string, number>> {
  return {
    ...choiceConstants(routing, { lanes, shared, sharedGate }),
    JOBS: jobs,
    STRIDE: stride,
  };
}
