import {
  bytesOf,
  type Dispatch,
  dispatch,
  type Kernel,
  type Operand,
} from "../../src/gpu/kernel.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import type { Tuning } from "../../src/gpu/tuning.ts";
import type { FloatFormat } from "../../src/gpu/weight_format.ts";
import { foldCounts, type FoldParameters } from "../lib/workgroup.ts";
import { MAX_NORMED_ROWS } from "../matmul/prologue/norms_rows.ts";
import { MAX_UNROLLED } from "../matmul/matmul_lanes.ts";
import { normLanes, type RowScales, scaleBuffers, scaleConstants } from "../norm/rms_norm.ts";
import { kernelOf } from "../shader.ts";

/** Vec8s of weights that an invocation loads at a time. */
const MAX_LOADED = 16;

/** Logits of a workgroup: few, so that many multiprocessors read the weights; one alone reads slowly. */
const PART = 8;

/** What the kernel's text depends on. */
interface LogitsShape {
  readonly format: FloatFormat;
  /** Of the norm: invocations of a workgroup. */
  readonly lanes: number;
  /** Invocations that share a logit. */
  readonly matrixLanes: number;
  readonly part: number;
  readonly steps: number;
  /**
   * Whether there are more vec8s than those that are loaded first, and whether lanes have different numbers of them.
   */
  readonly more: boolean;
  readonly partial: boolean;
  /** Vec8s of the row that an invocation norms. */
  readonly normed: number;
  /** Sums of the split-K matmul before, 0 without one. Unrolled: in a loop their loads would wait for each other. */
  readonly splitK: number;
  readonly biased: boolean;
}

/** Storage buffers where the scales of the normed rows are stored, without a bias of the logits. */
const SCALE_BINDINGS = 9;

/** Whether `routerLogits` can store the scales of the normed rows. */
export function routerStoresScales(
  { storageBuffers }: Pick<Tuning, "storageBuffers">,
  biased: boolean,
): boolean {
  return storageBuffers >= SCALE_BINDINGS + Number(biased);
}

/** Fewest lanes whose sums router_logits.wgsl adds itself, without lib/workgroup_sum.wgsl. */
const MIN_TOTAL_LANES = 32;

/** How lanes' sums are added. */
interface TotalParameters extends FoldParameters {
  /** Stages before the last one, which each lane folds itself: fours of results then, and of lanes at first. */
  readonly FIRST_STAGES: number;
  readonly REST_QUADS: number;
  readonly LANE_QUADS: number;
}

interface RouterParameters extends TotalParameters {
  /** Format of the router. */
  readonly weights: FloatFormat;
  /** Whether the scales of the rows are stored. */
  readonly STORES_SCALES: boolean;
  /** Whether the logits have a bias. */
  readonly BIASED: boolean;
  /** Whether lanes are too few to add their sums by fours. */
  readonly SMALL: boolean;
  /** Logits of a workgroup. */
  readonly PART: number;
  /**
   * Vec8s of weights that an invocation loads at a time, and whether there are more than those, or fewer for some
   * lanes.
   */
  readonly STEPS: number;
  readonly MORE: boolean;
  readonly PARTIAL: boolean;
  /** Vec8s of the row that an invocation norms. */
  readonly NORMED: number;
  /** Sums of the split-K matmul before, and all but the first of them. */
  readonly SUMS: number;
  readonly MORE_SUMS: number;
  /** Floats of workgroup memory for the lanes' sums. */
  readonly LANE_SUMS: number;
  /** Lanes that are added without a branch in between. */
  readonly UNROLL: number;
}

function totalCounts(lanes: number): TotalParameters {
  const counts = foldCounts(lanes);
  return {
    ...counts,
    FIRST_STAGES: Math.max(0, counts.STAGES - 1),
    REST_QUADS: counts.REST / 4,
    LANE_QUADS: lanes / 4,
  };
}

function logitsKernel(name: string, shape: LogitsShape, scales: boolean): Kernel {
  const { format, lanes, matrixLanes, part, steps, more, partial, normed, splitK, biased } = shape;
  return kernelOf<RouterParameters>("experts/router_logits")({
    weights: format,
    STORES_SCALES: scales,
    BIASED: biased,
    SMALL: lanes < MIN_TOTAL_LANES,
    ...totalCounts(lanes),
    PART: part,
    STEPS: steps,
    MORE: more,
    PARTIAL: partial,
    NORMED: normed,
    SUMS: splitK,
    MORE_SUMS: Math.max(0, splitK - 1),
    LANE_SUMS: lanes / matrixLanes * (matrixLanes + 1),
    UNROLL: Math.min(matrixLanes, MAX_UNROLLED),
  }, { name });
}

/**
 * Whether one dispatch can norm `rows` rows and multiply them by the router: few rows on hardware with
 * `Tuning.componentStores`, where a row fits into workgroup memory. More rows have a norm and a matmul of their own,
 * with the same bits.
 */
export function canNormRouted(router: Matrix, rows: number, tuning: Tuning): boolean {
  const { format, cols, lanes, shards } = router;
  if (!tuning.componentStores || rows > MAX_NORMED_ROWS || shards.length > 1) return false;
  if (format !== "bf16" && format !== "f16" && format !== "f32") return false;
  const shape = shapeOf(router, tuning);
  // The lanes' sums of squares, and on matrix units their largest numbers.
  const words = cols + (tuning.tensor ? 3 : 2) * shape.lanes + shape.lanes / lanes;
  return shape.lanes >= lanes && 4 * words <= tuning.workgroupBytes;
}

function shapeOf(router: Matrix, tuning: Tuning): Omit<LogitsShape, "splitK" | "biased"> {
  const { format, cols, lanes: matrixLanes } = router;
  const lanes = normLanes({ cols, lanes: tuning.rowLanes });
  const most = Math.ceil(cols / 8 / matrixLanes);
  const steps = stepsOf(most);
  return {
    format: format as FloatFormat,
    lanes,
    matrixLanes,
    steps,
    more: steps < most,
    partial: cols / 8 % (steps * matrixLanes) !== 0,
    part: Math.min(PART, lanes / matrixLanes),
    normed: Math.ceil(cols / 8 / lanes),
  };
}

/**
 * Loads at a time: the largest divisor of a lane's `most`; if that is small, a number that leaves fewer loads at the
 * end.
 */
function stepsOf(most: number): number {
  let steps = Math.min(most, MAX_LOADED);
  while (most % steps !== 0) steps--;
  return 2 * steps > Math.min(most, MAX_LOADED)
    ? steps
    : Math.ceil(most / Math.ceil(most / MAX_LOADED));
}

/**
 * Records, for each row: stream = x + its `splitK` sums; normed = norm(stream); logits = normed W^T (+ bias). Without
 * sums logits = norm(x) W^T (+ bias), and normed is x normed with `expertsNorm`. One dispatch; see `canNormRouted`. The
 * bits are those of `rmsNorm` and of `matmul` where no matrix unit multiplies.
 */
export function routerLogits(
  { matrix, x, added, norm, expertsNorm, bias, scales, ...out }: {
    /** [logits, cols] */
    readonly matrix: Matrix;
    /** The residual stream, [rows, cols]. */
    readonly x: Operand;
    readonly added: {
      /** [splitK, rows, cols] */
      readonly sums: Operand;
      readonly splitK: number;
      /** Gets the stream, [rows, cols]: not x, which all workgroups read. */
      readonly stream: Operand;
    } | undefined;
    /** Of the norm, [cols]. */
    readonly norm: Operand;
    /** Of the logits, [matrix.rows]. */
    readonly bias?: Operand | undefined;
    /** Of the norm of what experts read, where nothing is added, [cols]. */
    readonly expertsNorm?: Operand | undefined;
    /** [rows, cols] */
    readonly normed: Operand;
    /** [rows, matrix.rows] */
    readonly logits: Operand;
    /** Gets the scales of the normed rows; those of the other inputs become the largest. See `routerStoresScales`. */
    readonly scales?: RowScales | undefined;
  },
  { rows, eps, tuning, label }: {
    readonly rows: number;
    readonly eps: number;
    readonly tuning: Tuning;
    readonly label: string;
  },
): Dispatch {
  const { cols } = matrix;
  const splitK = added?.splitK ?? 0;
  const [{ operand: weights } = { operand: x }] = matrix.shards;
  const shape = { ...shapeOf(matrix, tuning), splitK, biased: bias !== undefined };
  const { format, lanes, matrixLanes, part, steps, more, partial, normed } = shape;
  const name = `router_logits_${format}_${lanes}x${normed}_${matrixLanes}x${part}_${steps}${
    more ? "_more" : ""
  }${partial ? "_part" : ""}_${splitK}${bias ? "_bias" : ""}${scales ? "_scale" : ""}`;
  const code = logitsKernel(name, shape, scales !== undefined);
  return dispatch(code, {
    // The kernel computes the ranges' stride from its size.
    buffers: {
      weights,
      x,
      ...added
        ? { sums: { ...added.sums, size: 4 * splitK * rows * cols }, stream: added.stream }
        : { experts_weight: expertsNorm ?? norm },
      norm_weight: norm,
      ...out,
      ...bias && { bias },
      ...scaleBuffers(scales),
    },
    constants: {
      COLS: cols,
      EPS: eps,
      LANES: lanes,
      MATRIX_LANES: matrixLanes,
      ROW_VECTORS: cols / 4,
      LOGITS: matrix.rows,
      ...scaleConstants(scales),
    },
    workgroups: [Math.ceil(matrix.rows / part), rows],
    label,
    work: {
      bytes: bytesOf(weights) + 4 * rows * cols * (splitK + 3),
      flops: 2 * rows * cols * matrix.rows,
    },
  });
}
