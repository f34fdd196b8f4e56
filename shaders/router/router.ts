import {
  bytesOf,
  type Dispatch,
  dispatch,
  type Kernel,
  kernel,
  type Operand,
} from "../../src/gpu/kernel.ts";
import type { FloatFormat, Matrix, Tuning } from "../../src/gpu/matrix.ts";
import type { RowScales } from "../norm/rms_norm.ts";
import { shader } from "../shader.ts";
import { biasOf, CHOICE_CONSTANTS, choiceConstants, choiceCounts, type Routing } from "./route.ts";

/** Vec8s of weights that an invocation has on their way. */
const MOST_LOADED = 16;

/** Logits that an invocation sums at a time: they share what is read of the row. */
const MOST_EACH = 4;

const BIAS = 7;

const BINDINGS = ["weights", "x", "sums", "norm_weight", "normed", "experts", "shares"] as const;

/** What the kernel's text depends on beside the scores. */
interface RouterShape {
  readonly format: FloatFormat;
  readonly lanes: number;
  /** Invocations that share a logit. */
  readonly matrixLanes: number;
  readonly each: number;
  readonly steps: number;
  /** Vec8s of the row that an invocation norms. */
  readonly normed: number;
}

const kernels = new Map<string, Kernel>();

/**
 * Whether one dispatch can norm rows, multiply them by the router and choose their experts: on hardware,
 * where a row fits into workgroup memory.
 */
export function canRoute(router: Matrix, numExperts: number, tuning: Tuning): boolean {
  const { format, cols, lanes, shards } = router;
  if (tuning.software || shards.length > 1 || cols / 8 % lanes !== 0) return false;
  if (format !== "bf16" && format !== "f16" && format !== "f32") return false;
  const shape = shapeOf(router, numExperts, tuning);
  // The lanes' sums of squares, and on matrix units their largest numbers.
  const lanesWords = (tuning.tensor ? 2 : 1) * shape.lanes;
  const words = cols + laneSums(shape) + lanesWords + 8 * numExperts;
  return 4 * words <= tuning.workgroupBytes;
}

function shapeOf(
  { format, cols, lanes: matrixLanes }: Matrix,
  numExperts: number,
  { rowLanes: lanes }: Tuning,
): RouterShape {
  const each = Math.min(MOST_EACH, Math.ceil(numExperts / (lanes / matrixLanes)));
  const whole = cols / 8 / matrixLanes;
  let steps = Math.min(whole, Math.floor(MOST_LOADED / each));
  while (whole % steps !== 0) steps--;
  return {
    format: format as FloatFormat,
    ...{ lanes, matrixLanes, each, steps },
    normed: Math.ceil(cols / 8 / lanes),
  };
}

function laneSums({ lanes, matrixLanes, each }: RouterShape): number {
  return each * lanes / matrixLanes * (matrixLanes + 1);
}

/** Storage buffers of a router that notes scales, a bias counted. */
const NOTING_BINDINGS = BINDINGS.length + 3;

/** Whether `router` can note scales. */
export function routerNotes({ storageBuffers }: Pick<Tuning, "storageBuffers">): boolean {
  return storageBuffers >= NOTING_BINDINGS;
}

function routerKernel(scores: Routing["scores"], shape: RouterShape, notes: boolean): Kernel {
  const { format, lanes, matrixLanes, each, steps, normed } = shape;
  const name = `router_${format}_${scores}_${lanes}x${normed}_${matrixLanes}_${each}x${steps}${
    notes ? "_scale" : ""
  }`;
  return kernels.getOrInsertComputed(name, () => {
    const code = shader("router/router", {
      slots: {
        weights: `weights/weights_${format}`,
        scores: `router/route_${scores}`,
        note: `norm/norm_note_${notes ? "scale" : "nothing"}`,
      },
      counts: {
        ...choiceCounts(lanes, BIAS),
        EACH: each,
        STEPS: steps,
        NORMED: normed,
        LANE_SUMS: laneSums(shape),
        UNROLL: Math.min(16, matrixLanes),
      },
    });
    return kernel(name, code, {
      bindings: [
        ...BINDINGS,
        ...scores === "sigmoid" ? ["bias"] : [],
        ...notes ? ["scales", "lowered"] : [],
      ],
      constants: [
        ...[...CHOICE_CONSTANTS, "COLS", "EPS", "MATRIX_LANES", "ROW_VECTORS", "SPLIT_K"],
        ...notes ? ["LOWERED_ROWS", "ROW_JOBS"] : [],
      ],
    });
  });
}

/**
 * Records, for each row: x += its `splitK` sums; normed = norm(x); experts, u32 [rows, topK + shared],
 * and their weights, f32 of the same shape, of the logits normed W^T. One dispatch; see `canRoute`.
 *
 * The logits have the bits that `matmul` gives where no matrix unit multiplies.
 */
export function router(
  { matrix, bias, experts, weights, noted, ...row }: {
    /** [numExperts or one more, cols] */
    readonly matrix: Matrix;
    /** Of sigmoid scores, [numExperts]. */
    readonly bias: Operand | undefined;
    /** The residual stream, [rows, cols]. */
    readonly x: Operand;
    /** [splitK, rows, cols] */
    readonly sums: Operand;
    /** Of the norm, [cols]. */
    readonly norm: Operand;
    /** [rows, cols] */
    readonly normed: Operand;
    readonly experts: Operand;
    readonly weights: Operand;
    /** Gets the scales of the normed rows, and the largest for those of the other inputs; see `routerNotes`. */
    readonly noted?: RowScales | undefined;
  },
  shape: Routing & {
    readonly rows: number;
    readonly splitK: number;
    readonly eps: number;
    readonly shared: number;
    readonly tuning: Tuning;
    readonly label: string;
  },
): Dispatch {
  const { rows, splitK, eps, shared, tuning, label, numExperts } = shape;
  const { cols } = matrix;
  const [{ operand } = { operand: row.x }] = matrix.shards;
  const code = shapeOf(matrix, numExperts, tuning);
  return dispatch(routerKernel(shape.scores, code, noted !== undefined), {
    buffers: {
      weights: operand,
      x: row.x,
      // The kernel computes the ranges' stride from its size.
      sums: { ...row.sums, size: 4 * splitK * rows * cols },
      norm_weight: row.norm,
      normed: row.normed,
      experts,
      shares: weights,
      ...biasOf(shape, bias, label),
      ...noted ? { scales: noted.normed, lowered: noted.lowered } : {},
    },
    constants: {
      ...choiceConstants(shape, { lanes: code.lanes, shared }),
      COLS: cols,
      EPS: eps,
      MATRIX_LANES: code.matrixLanes,
      ROW_VECTORS: cols / 4,
      SPLIT_K: splitK,
      ...noted ? { LOWERED_ROWS: noted.stride, ROW_JOBS: noted.jobs } : {},
    },
    workgroups: [rows],
    label,
    work: {
      bytes: bytesOf(operand) + 4 * rows * cols * (splitK + 3),
      flops: 2 * rows * cols * numExperts,
    },
  });
}
