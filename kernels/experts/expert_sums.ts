import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import type { Tuning } from "../../src/gpu/tuning.ts";
import { BLOCK_VEC8S, isQuantized } from "../../src/gpu/weight_format.ts";
import { kernelOf } from "../shader.ts";
import { MAX_UNROLLED } from "../matmul/matmul_lanes.ts";
import { type Dots, dotsOf, PACKED_VEC8_BYTES } from "../matmul/matmul_stages.ts";
import { expertLanes, MAX_ALONE_ROWS } from "./expert_shape.ts";
import { PLAIN } from "../lib/epilogue.ts";
import { sharedRows } from "./expert_kernels.ts";
import { expertWork } from "./experts.ts";
import { expertScales } from "./experts_on_units.ts";
import type { Jobs } from "./job_lists.ts";

/** What the kernel's text depends on. */
export interface SumsShape {
  readonly format: Matrix["format"];
  readonly lanes: number;
  /** Jobs of a row. */
  readonly groups: number;
  readonly dots: Dots;
  /** Outputs of a workgroup. */
  readonly outs: number;
  /** Packed blocks of each output's weights that a lane loads at a time. */
  readonly steps: number;
  /** Whether the last load has fewer blocks, or some lanes have fewer. */
  readonly part: boolean;
  /** For how many lanes rows are packed, at most as many as share an output. */
  readonly packedLanes: number;
  /** Whether biases are added to the experts' outputs. */
  readonly biased: boolean;
  /** Vec8s of x that a workgroup keeps in its memory, see expert_sums_resident.wgsl; 0: none. */
  readonly resident: number;
}

/**
 * Most packed blocks of weights that a lane loads at a time. More make the kernel's code longer: with 24 blocks it no
 * longer fit into the instruction cache beside the other kernels of a q8 layer, which took 7 us of 60 (H200).
 */
const MAX_LOADS = 12;

/**
 * The same of quantized weights, whose code is longer: with one block of each output at a time a round of gpt-oss takes
 * 2.17 ms instead of 2.28, one of GLM-4.7-Flash in q8 4.01 instead of 4.24 (H200).
 */
const MAX_QUANTIZED_LOADS = 4;

/** Most outputs of a workgroup: they share what is read of x. */
const MAX_OUTS = 8;

/**
 * Rounds of blocks from which x is resident in workgroup memory, sets of such a workgroup, and blocks of each output
 * that a lane has in flight. An H200 took 11.2 us for DeepSeek-V2-Lite's q8 instead of 13.9; with 4 sets 18.7.
 */
const [RESIDENT_ROUNDS, RESIDENT_SETS, RESIDENT_STEPS] = [3, 8, 4];
/** Outputs of a set. */
const SET_OUTS = 2;

/**
 * Whether `expertSums` takes the matrix: for few rows, on hardware, if the matrix is one shard and a workgroup has
 * lanes for all jobs of a row; with `biased` each lane loads one bias.
 */
export function canSum(
  matrix: Matrix,
  { rows, topK }: Pick<Jobs, "rows" | "topK">,
  { tuning, biased }: { readonly tuning: Tuning; readonly biased: boolean },
): boolean {
  const { format, cols, shards } = matrix;
  if (tuning.software || rows > MAX_ALONE_ROWS || shards.length > 1) return false;
  if (cols / 8 % (BLOCK_VEC8S[format] * matrix.lanes) !== 0) return false;
  const lanes = expertLanes(matrix, tuning);
  if (biased && lanes < MAX_OUTS) return false;
  const invocations = topK * lanes;
  const most = 2 * tuning.lanes * tuning.groups;
  return invocations >= MAX_OUTS && invocations <= most && !expertScales(matrix, tuning.tensor);
}

function shapeOf(
  matrix: Matrix,
  { topK, biased }: Pick<Jobs, "topK"> & { readonly biased: boolean },
  tuning: Tuning,
): SumsShape {
  const { format, cols, lanes: packedLanes } = matrix;
  const lanes = expertLanes(matrix, tuning);
  const few = lanes !== packedLanes;
  const each = Math.ceil(cols / 8 / BLOCK_VEC8S[format] / lanes);
  const loads = isQuantized(format) ? MAX_QUANTIZED_LOADS : MAX_LOADS;
  let outs = MAX_OUTS;
  while (outs > 4 && outs * each > loads) outs /= 2;
  const most = Math.min(each, Math.floor(loads / outs));
  const steps = Math.ceil(each / Math.ceil(each / most));
  const dots = dotsOf(format, tuning);
  const shape = { format, lanes, packedLanes, groups: topK, dots, biased };
  const resident = topK * cols / 8;
  if (each > (RESIDENT_ROUNDS - 1) * steps && hasRoom({ ...shape, resident }, tuning)) {
    return {
      ...shape,
      outs: SET_OUTS,
      steps: RESIDENT_STEPS,
      part: each % RESIDENT_STEPS !== 0,
      resident,
    };
  }
  return { ...shape, outs, steps, part: few || each % steps !== 0, resident: 0 };
}

/** Whether a workgroup has room for rounded x and for its sets. */
function hasRoom(
  { lanes, groups, dots, resident }: Pick<SumsShape, "lanes" | "groups" | "dots" | "resident">,
  { rowLanes, workgroupBytes }: Tuning,
): boolean {
  const threads = RESIDENT_SETS * lanes * groups;
  const bytes = PACKED_VEC8_BYTES * resident + 8 * (threads + 2 * RESIDENT_SETS * groups) +
    4 * groups;
  return dots === "packed" && threads <= rowLanes && bytes <= workgroupBytes;
}

/** Parameters that expert_sums.wgsl and expert_sums_resident.wgsl share. */
interface AnySumsParameters {
  /** Format of the experts' weights. */
  readonly weights: Matrix["format"];
  /** What is multiplied: see lib/dot.wgsl. */
  readonly dots: Dots;
  /** Whether rows are packed for fewer lanes than share an output, and for how many. */
  readonly PACKED_FEW: boolean;
  readonly PACKED_LANES: number;
  /** Vec8s of a packed block of weights. */
  readonly BLOCK_VEC8S: number;
  /** Outputs of a workgroup, or of a set of one. */
  readonly OUTS: number;
  /** Blocks of each output that a lane loads at a time, and whether the last load has as many. */
  readonly STEPS: number;
  readonly WHOLE: boolean;
  /** Vectors of workgroup memory for the lanes' sums, and for the jobs'. */
  readonly LANE_SUMS: number;
  readonly JOB_SUMS: number;
  /** Lanes that are added without a branch in between. */
  readonly UNROLL: number;
}

interface SumsParameters extends AnySumsParameters {
  /** Fours of outputs. */
  readonly QUADS: number;
  /** Whether biases are added to the experts' outputs. */
  readonly BIASED: boolean;
}

interface ResidentSumsParameters extends AnySumsParameters {
  /** Rows of x and stages that workgroup memory holds: the vec8s of all jobs of a row. */
  readonly ROWS: 1;
  readonly BUFFERS: 1;
  readonly STAGE: number;
  /** Invocations of a workgroup, and vec8s of x that one loads. */
  readonly THREADS: number;
  readonly LOADS: number;
}

const SUMS = kernelOf<SumsParameters>("experts/expert_sums");
const RESIDENT_SUMS = kernelOf<ResidentSumsParameters>("experts/expert_sums_resident");

function sumsKernel(
  name: string,
  { format, lanes, packedLanes, groups, dots, outs, steps, part, biased, resident }: SumsShape,
): Kernel {
  const sets = resident > 0 ? RESIDENT_SETS : 1;
  const vectors = sets * groups * Math.ceil(outs / 4);
  const threads = sets * groups * lanes;
  const parameters = {
    weights: format,
    dots,
    PACKED_FEW: lanes !== packedLanes,
    PACKED_LANES: packedLanes,
    WHOLE: !part,
    BLOCK_VEC8S: BLOCK_VEC8S[format],
    OUTS: outs,
    STEPS: steps,
    LANE_SUMS: vectors * (lanes + 1),
    JOB_SUMS: vectors,
    UNROLL: Math.min(lanes, MAX_UNROLLED),
  };
  if (resident === 0) return SUMS({ ...parameters, QUADS: outs / 4, BIASED: biased }, { name });
  const LOADS = Math.ceil(resident / threads);
  const staged = { ROWS: 1, BUFFERS: 1, STAGE: resident, THREADS: threads, LOADS } as const;
  return RESIDENT_SUMS({ ...parameters, ...staged }, { name });
}

interface SumsBuffers {
  readonly matrix: Matrix;
  readonly x: Operand;
  /** u32 [rows, topK] */
  readonly experts: Operand;
  /** f32 [rows, topK] */
  readonly weights: Operand;
  /** Of the experts' outputs, [numExperts, rows of an expert]. */
  readonly bias?: Operand | undefined;
  readonly out: Operand;
}

/**
 * Records `out[row] += sum over a row's experts of weight * W_e x[job]` for few rows; see `canSum`. The bits are
 * those of `expertMatmul` and of the norm that adds its outputs, one expert after the other.
 *
 * x is [rows, topK, cols], out [rows, rows of an expert].
 */
export function expertSums(
  buffers: SumsBuffers,
  { shared, tuning, label, ...jobs }: Jobs & {
    /** As of `expertMatmul`. */
    readonly shared: number;
    readonly tuning: Tuning;
    readonly label: string;
  },
): Dispatch[] {
  const biased = buffers.bias !== undefined;
  const shape = shapeOf(buffers.matrix, { ...jobs, biased }, tuning);
  return [sumsDispatch(buffers, { ...jobs, shape, shared, label })];
}

/** The same with a launch of `shape`, whatever `canSum` says. */
export function sumsDispatch(
  { matrix, x, experts, weights, bias, out }: SumsBuffers,
  { shape, shared, label, ...jobs }: Jobs & {
    readonly shape: SumsShape;
    readonly shared: number;
    readonly label: string;
  },
): Dispatch {
  const { rows, topK, numExperts } = jobs;
  const { format, cols } = matrix;
  const expertRows = matrix.rows / numExperts;
  const { lanes, dots, outs, steps, part, resident } = shape;
  const sets = resident > 0 ? RESIDENT_SETS : 1;
  const name = `expert_sums_${format}_${lanes}x${topK}_${dots}_${outs}x${steps}${
    part ? "_part" : ""
  }${lanes === matrix.lanes ? "" : `_packed${matrix.lanes}`}${bias ? "_bias" : ""}${
    resident > 0 ? `_resident_${resident}` : ""
  }`;
  const code = sumsKernel(name, shape);
  const [shard] = matrix.shards;
  if (!shard) throw new Error(`${label}: its matrix has no shard`);
  return dispatch(code, {
    buffers: {
      weights: shard.operand,
      x,
      out,
      experts,
      shares: weights,
      ...bias && { bias },
      ...isQuantized(format) && shard.scales ? { scales: shard.scales } : {},
    },
    constants: {
      COLS: cols,
      MATRIX_ROWS: expertRows,
      OUT_COLS: expertRows,
      LANES: lanes,
      GROUPS: topK,
      ...resident > 0 ? { SETS: sets } : {},
      ...sharedRows(numExperts, expertRows / 2, { shared, epilogue: PLAIN.store }),
    },
    workgroups: [Math.ceil(expertRows / outs / sets), rows],
    label,
    work: expertWork(matrix, { ...jobs, shared }, numExperts),
  });
}
