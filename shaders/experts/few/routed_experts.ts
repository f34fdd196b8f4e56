/** Router, choice and first matmul of the experts of few rows in one dispatch: see routed_experts.wgsl. */
import {
  bytesOf,
  type Dispatch,
  dispatch,
  type Kernel,
  kernel,
  type Operand,
} from "../../../src/gpu/kernel.ts";
import { BLOCK_VEC8S, isQuantized, type Matrix, type Tuning } from "../../../src/gpu/matrix.ts";
import { foldCounts } from "../../fragments/workgroup.ts";
import { type Dots, dotsOf } from "../../matmul/matmul_shape.ts";
import { normLanes } from "../../norm/rms_norm.ts";
import {
  CHOICE_CONSTANTS,
  choiceConstants,
  choiceCounts,
  type Routing,
} from "../../router/route.ts";
import { shader } from "../../shader.ts";
import { sharedRows } from "../expert_kernels.ts";
import { MOST_ALONE_ROWS } from "../expert_shape.ts";
import { expertWork } from "../experts.ts";
import { expertScales } from "../experts_on_units.ts";
import type { Jobs } from "../job_lists.ts";

/** Storage buffers that it binds at most. */
const BUFFERS = 11;

/** Words of `posted` before a row's keys. */
const KEYS = 32;

/** Vec8s of the router's weights that an invocation has on their way. */
const MOST_LOADED = 16;

/** Lanes added without a branch in between. */
const MOST_UNROLLED = 16;

/** Packed blocks of each of a lane's rows of weights that are on their way. */
const AHEAD = 4;

/** How often a workgroup looks for the makers of its row, which is 0.3 us or more each time. */
const PATIENCE = 1 << 16;

/** The binding of a bias that softmax scores have not. */
const UNBOUND = 0;

/** What the kernel's text depends on. */
interface RoutedShape {
  readonly format: Matrix["format"];
  readonly lanes: number;
  readonly groups: number;
  readonly pairs: number;
  readonly dots: Dots;
  /** Vec8s of a row. */
  readonly vec8s: number;
  readonly ahead: number;
  /** Of the norm. */
  readonly normLanes: number;
  readonly splitK: number;
  readonly routerLanes: number;
  readonly routerSteps: number;
}

/** The rows' experts, their norm and what is added before it. */
export interface RoutedRows {
  readonly routing: Routing;
  /** The router, [experts, cols]. */
  readonly router: Matrix;
  /** The residual stream, [rows, cols]. */
  readonly x: Operand;
  /** [splitK, rows, cols] */
  readonly sums: Operand;
  /** Of the norm, [cols]. */
  readonly norm: Operand;
  /** Gets the stream, [rows, cols]: not x, which all workgroups read. */
  readonly stream: Operand;
  /** `postedWords` of zeros, and zeros again before the next such dispatch (`expertSums`). */
  readonly posted: Operand;
}

/** Whether `routedExperts` takes few rows, `jobs` being those of the row with shared experts. */
export function canRoute(
  { matrix, router, routing }: {
    readonly matrix: Matrix;
    readonly router: Matrix;
    readonly routing: Routing;
  },
  { rows, tuning }: { readonly rows: number; readonly tuning: Tuning },
): boolean {
  const { format, cols, lanes, shards } = matrix;
  if (tuning.software || tuning.storageBuffers < BUFFERS || rows > MOST_ALONE_ROWS) return false;
  if (routing.scores !== "softmax" || routing.topGroups !== routing.groups) return false;
  if (router.format !== "bf16" || router.shards.length > 1 || shards.length > 1) return false;
  if (cols / 8 % (BLOCK_VEC8S[format] * lanes) !== 0 || cols / 8 % router.lanes !== 0) return false;
  if (expertScales(matrix, tuning.tensor)) return false;
  // The row, x as bytes with their steps, and what the choice takes.
  const bytes = 4 * cols + 20 * cols / 8 + 4 * (4 * routing.numExperts + 2048);
  return router.cols === cols && bytes <= tuning.workgroupBytes;
}

function shapeOf(matrix: Matrix, router: Matrix, splitK: number, tuning: Tuning): RoutedShape {
  const { format, cols, lanes } = matrix;
  const vec8s = cols / 8;
  const blocks = vec8s / BLOCK_VEC8S[format] / lanes;
  return {
    ...{ format, lanes, vec8s, splitK, pairs: (globalThis as { X?: Record<string, number> }).X?.["pairs"] ?? tuning.pairs },
    groups: tuning.groups * tuning.lanes / lanes,
    dots: dotsOf(format, { rows: 1, tuning }),
    ahead: most(blocks, (globalThis as { X?: Record<string, number> }).X?.["ahead"] ?? AHEAD),
    normLanes: normLanes({ cols, lanes: tuning.rowLanes }),
    routerLanes: router.lanes,
    routerSteps: most(vec8s / router.lanes, MOST_LOADED),
  };
}

/** The most, up to `limit`, that `count` divides into. */
function most(count: number, limit: number): number {
  let n = Math.min(count, limit);
  while (count % n !== 0) n--;
  return n;
}

const kernels = new Map<string, ReturnType<typeof routedKernel>>();

/** Logits of a maker. */
function partOf({ lanes, groups, routerLanes }: RoutedShape): number {
  return lanes * groups / routerLanes;
}

function routedKernel(name: string, shape: RoutedShape): Kernel {
  const { format, lanes, groups, pairs, dots, vec8s, ahead, splitK, routerLanes } = shape;
  const { normLanes, routerSteps } = shape;
  const threads = lanes * groups;
  const code = shader("experts/few/routed_experts", {
    slots: {
      weights: `weights/weights_${format}`,
      packing: "matmul/part/packed_all",
      dot: `matmul/dot/${dots}`,
      epilogue: "matmul/epilogue/swiglu",
      scores: "router/route_softmax",
      router: "experts/few/router_bf16",
    },
    counts: {
      ...choiceCounts(UNBOUND),
      ...foldCounts(normLanes),
      ...{ RANKED: 2, ROWS: 1, BUFFERS: 1, STAGE: vec8s, THREADS: threads },
      BLOCK_VEC8S: BLOCK_VEC8S[format],
      ...{ PAIRS: pairs, PAIR_HALVES: Math.floor(pairs / 2), ONE_PAIR: pairs % 2, AHEAD: ahead },
      TURNS: Number(vec8s / BLOCK_VEC8S[format] / lanes > ahead),
      LOADS: Math.ceil(vec8s / threads),
      VECTORS: Math.max(2 * vec8s, groups * (lanes + 1)),
      UNROLL: Math.min(lanes, MOST_UNROLLED),
      NORM_LANES: normLanes,
      NORM_TURNS: Math.ceil(normLanes / threads),
      NORM_EACH: Math.ceil(vec8s / normLanes),
      ADDENDS: splitK,
      MORE_ADDENDS: splitK - 1,
      PART: partOf(shape),
      LOGIT_SUMS: partOf(shape) * (routerLanes + 1),
      ROUTER_STEPS: routerSteps,
      MORE: Number(vec8s / routerLanes > routerSteps),
      ROUTER_UNROLL: Math.min(routerLanes, MOST_UNROLLED),
    },
  });
  return kernel(name, code, {
    bindings: [
      ...["weights", "x", "out", "sums", "norm_weight", "router", "stream", "posted"],
      ...["experts", "shares", ...isQuantized(format) ? ["scales"] : []],
    ],
    constants: [
      ...["COLS", "MATRIX_ROWS", "OUT_COLS", "LANES", "GROUPS", "EPS", "ROUTER_LANES", "MAKERS"],
      ...["ROUTED", "SHARED", "SHARED_NEXT", "SHARED_STEP", "ROW_JOBS", "JOBS", "HEAD"],
      ...["PATIENCE", "ROW_POSTED", "NORMED", "VECTORS", ...CHOICE_CONSTANTS],
    ],
  });
}

/** u32 words of `posted` for so many rows. */
export function postedWords(
  { rows, cols, numExperts }: {
    readonly rows: number;
    readonly cols: number;
    readonly numExperts: number;
  },
): number {
  return rows * (KEYS + numExperts + cols);
}

/**
 * Records stream = x + its `splitK` sums; out[job] = swiglu(W_e norm(stream)) for the experts e of each row, and
 * stores these and their weights; see `canRoute`. The bits are those of `rowLogits`, `route` and `expertMatmul`.
 */
export function routedExperts(
  { matrix, out, experts, weights, of }: {
    /** [experts with the shared ones, cols] */
    readonly matrix: Matrix;
    /** [rows topK, rows of an expert / 2] */
    readonly out: Operand;
    /** u32 [rows, topK] */
    readonly experts: Operand;
    /** f32 [rows, topK] */
    readonly weights: Operand;
    readonly of: RoutedRows;
  },
  { splitK, eps, shared, tuning, label, patience = PATIENCE, ...jobs }: Jobs & {
    readonly splitK: number;
    readonly eps: number;
    /** The last experts that every row has, see `expertMatmul`. */
    readonly shared: number;
    readonly tuning: Tuning;
    readonly label: string;
    /** How often workgroups look for the router's before they do its work; default many times. */
    readonly patience?: number;
  },
): Dispatch {
  const { router, routing, x, sums, norm, stream, posted } = of;
  const { rows, topK, numExperts } = jobs;
  const { format, cols, lanes } = matrix;
  const [{ operand, scales } = { operand: x, scales: undefined }] = matrix.shards;
  const [{ operand: routerWeights } = { operand: x }] = router.shards;
  const shape = shapeOf(matrix, router, splitK, tuning);
  const { groups, pairs, dots, ahead, normLanes, routerLanes, routerSteps } = shape;
  const name = [
    ...["routed_experts", format, `${lanes}x${groups}x${pairs}`, dots, shape.vec8s, ahead],
    ...[splitK, `${normLanes}_${routerLanes}x${routerSteps}`],
  ].join("_");
  const expertRows = matrix.rows / numExperts;
  const parts = Math.ceil(routing.numExperts / partOf(shape));
  const total = rows * topK;
  const choosing = choiceConstants(routing, { lanes: lanes * groups, shared });
  const head = Math.ceil(rows * (parts + 1) / total);
  const work = expertWork(matrix, { ...jobs, shared }, numExperts);
  return dispatch(kernels.getOrInsertComputed(name, () => routedKernel(name, shape)), {
    buffers: {
      ...{ weights: operand, x, out, norm_weight: norm, router: routerWeights },
      // The kernel computes the ranges' stride from its size.
      sums: { ...sums, size: 4 * splitK * rows * cols },
      ...{ stream, posted, experts, shares: weights },
      ...isQuantized(format) && scales ? { scales } : {},
    },
    constants: {
      ...{ COLS: cols, MATRIX_ROWS: expertRows, OUT_COLS: expertRows / 2, EPS: eps },
      ...{ LANES: lanes, GROUPS: groups, ROUTER_LANES: routerLanes, MAKERS: parts },
      ...sharedRows(numExperts, expertRows / 2, { shared, epilogue: "swiglu" }),
      ...{ ROW_JOBS: topK, JOBS: total, HEAD: head, PATIENCE: patience },
      NORMED: KEYS + routing.numExperts,
      ROW_POSTED: KEYS + routing.numExperts + cols,
      ...{ ...choosing, VECTORS: choosing.PADDED / 4 },
    },
    workgroups: [total, head + Math.ceil(expertRows / 2 / pairs / groups)],
    label,
    work: {
      bytes: work.bytes + bytesOf(routerWeights) + 4 * rows * cols * (splitK + 2),
      flops: work.flops + 2 * rows * cols * routing.numExperts,
    },
  });
}
