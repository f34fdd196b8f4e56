import { type Kernel } from "../../src/gpu/kernel.ts";
import { BLOCK_VEC8S, type WeightFormat } from "../../src/gpu/weight_format.ts";
import { kernelOf } from "../shader.ts";
import type { Epilogue, EpilogueParameters } from "../lib/epilogue.ts";
import { PLAIN_ROWS, type Prologue, type PrologueParameters } from "./prologue/prologue.ts";
import { MAX_UNROLLED } from "./matmul_lanes.ts";
import type { MatmulShape } from "./matmul_shape.ts";
import { type Dots, PACKED_VEC8_BYTES } from "./matmul_stages.ts";

/** Parameters that all matmul kernels take, matmul.wgsl included, besides the epilogue's. */
interface CommonParameters {
  /** Format of W: lib/weights_FORMAT. */
  readonly weights: WeightFormat;
  /** What is stored in `out`: see lib/matmul_outputs.wgsl. */
  readonly out: "numbers" | "partials" | "handoff";
  /**
   * How the lanes' sums are added: there is one lane per output, or a group of lanes has one pair of outputs, or
   * several.
   */
  readonly ending: "one_lane" | "pair" | "lanes";
  /** Whether rows of W are packed for fewer lanes than share an output, and for how many lanes they are packed. */
  readonly PACKED_FEW: boolean;
  readonly PACKED_LANES: number;
  /** Rows of x that a workgroup multiplies. */
  readonly ROWS: number;
  /** Pairs of outputs of a group of lanes, and half of that, rounded down. */
  readonly PAIRS: number;
  readonly PAIR_HALVES: number;
  /** Vec8s of a packed block of W. */
  readonly BLOCK_VEC8S: number;
  /** Invocations of a workgroup. */
  readonly THREADS: number;
  /** Rows whose sums go through workgroup memory in one pass, the number of passes, and whether there are several. */
  readonly SUMS: number;
  readonly SUM_TILES: number;
  readonly MORE_TILES: boolean;
  /** Pairs of floats of workgroup memory for the sums of groups with one pair of outputs. */
  readonly PAIR_SUMS: number;
  /** Vec4s of workgroup memory, which hold x and later the lanes' sums. */
  readonly VECTORS: number;
  /** Unroll factor of the loop that adds the lanes' sums. */
  readonly UNROLL: number;
  /** Unroll factor of the loop that joins the groups' partial results. */
  readonly GROUPS_AT_ONCE: number;
}

/** Further parameters of the kernels whose x passes through workgroup memory. */
interface StageParameters {
  /** How x and the weights are multiplied: see lib/dot.wgsl. */
  readonly dots: Dots;
  /** Whether ranges of k are whole stages. */
  readonly WHOLE: boolean;
  /** Vec8s (8 numbers along k) of each row of x that workgroup memory holds at a time. */
  readonly STAGE: number;
  /** Stages that it holds. */
  readonly BUFFERS: number;
}

/** matmul_prefetch.wgsl. */
interface PrefetchParameters extends CommonParameters, StageParameters {
  /** Parts of x that an invocation loads per stage. */
  readonly LOADS: number;
  /** Blocks of a row of W that a lane multiplies per stage. */
  readonly STEPS: number;
}

/** matmul_staged.wgsl. */
interface StagedParameters extends PrefetchParameters {
  /** Parts of a vec8 of x: 2 if an invocation loads half a vec8, else 1. */
  readonly PARTS: number;
}

/** Parameters of matmul_resident.wgsl, besides those of its prologue. */
interface ResidentParameters extends CommonParameters, StageParameters {
  /** Blocks of a row of W that a lane loads ahead of their use, and whether it has more than those. */
  readonly AHEAD: number;
  readonly TURNS: boolean;
}

const CACHED = kernelOf<CommonParameters & Pick<StageParameters, "dots"> & EpilogueParameters>(
  "matmul/matmul",
);
const STAGED = kernelOf<StagedParameters & EpilogueParameters>("matmul/matmul_staged");
const PREFETCH = kernelOf<PrefetchParameters & EpilogueParameters>("matmul/matmul_prefetch");
const RESIDENT = kernelOf<ResidentParameters & PrologueParameters & EpilogueParameters>(
  "matmul/matmul_resident",
);

/**
 * Possible numbers of rows whose sums go through workgroup memory at once: up to 7 in 16 KiB, up to 8 where there is
 * more.
 */
const MAX_SUMS = { 7: [2, 3, 4, 5, 6, 7], 8: [2, 3, 4, 5, 6, 7, 8] } as const;

/**
 * Highest unroll factor of the loop that joins partial results of groups. Where there are such results, the number of
 * groups is a power of two: workgroups are not widened.
 */
const MAX_GROUPS = 16;

/** What a kernel's WGSL depends on besides its shape. */
interface MatmulCode {
  readonly format: WeightFormat;
  readonly epilogue: Epilogue;
  /** See `lanesOf`. */
  readonly lanes: number;
  /** Lanes that the rows of the matrix are packed for; default `lanes`. */
  readonly packedLanes?: number;
  /** How a resident kernel brings x into workgroup memory; default: as it is. */
  readonly prologue?: Prologue | undefined;
}

export function matmulKernel(shape: MatmulShape, of: MatmulCode): Kernel {
  const { format, epilogue, lanes, prologue = PLAIN_ROWS } = of;
  const { rows, pairs, groups } = shape;
  const sizes = [rows, pairs, lanes, groups];
  const stage = shape.kind === "cached" ? [] : [shape.dots, shape.stage];
  const part = [...hasPart(shape) ? ["part"] : [], ...isFew(of) ? [`packed${of.packedLanes}`] : []];
  const resident = shape.kind === "resident"
    ? [shape.ahead, ...prologue.name ? [prologue.name] : []]
    : [];
  const name = [
    "matmul",
    shape.kind,
    format,
    epilogue.name,
    ...sizes,
    ...stage,
    ...part,
    ...resident,
    ...maxSums(shape) > 7 && rows === maxSums(shape) ? ["sums"] : [],
  ]
    .join("_");
  const parameters = { ...parametersOf(shape, of), ...epilogue.parameters };
  if (shape.kind === "cached") return CACHED({ ...parameters, dots: "floats" }, { name });
  const threads = lanes * groups;
  const STEPS = shape.stage / BLOCK_VEC8S[format] / lanes; // blocks of a row of W per lane
  const PARTS = shape.kind === "staged" && shape.dots === "floats" ? 2 : 1;
  const staged = {
    ...parameters,
    dots: shape.dots,
    WHOLE: !hasPart(shape),
    STAGE: shape.stage,
    BUFFERS: buffersOf(shape),
  };
  const vec8s = rows * shape.stage;
  const LOADS = Math.ceil(vec8s * PARTS / threads);
  if (shape.kind === "prefetch") return PREFETCH({ ...staged, LOADS, STEPS }, { name });
  if (shape.kind !== "resident") return STAGED({ ...staged, LOADS, STEPS, PARTS }, { name });
  return RESIDENT({
    ...staged,
    ...prologue.parameters({ threads, vec8s, floats: shape.dots === "floats" }),
    AHEAD: shape.ahead,
    TURNS: STEPS > shape.ahead,
  }, { name });
}

/** How the lanes' sums are added: see lib/matmul_outputs.wgsl. */
function endingOf({ pairs }: MatmulShape, lanes: number): "one_lane" | "pair" | "lanes" {
  if (lanes === 1) return "one_lane";
  return pairs === 1 ? "pair" : "lanes";
}

function parametersOf(shape: MatmulShape, of: MatmulCode): CommonParameters {
  const { format, epilogue, lanes, packedLanes = lanes } = of;
  const { rows, pairs, groups } = shape;
  const sums = sumsAtOnce(shape);
  return {
    weights: format,
    out: epilogue.out ?? "numbers",
    ending: endingOf(shape, lanes),
    PACKED_FEW: isFew(of),
    PACKED_LANES: packedLanes,
    ROWS: rows,
    PAIRS: pairs,
    PAIR_HALVES: Math.floor(pairs / 2),
    BLOCK_VEC8S: BLOCK_VEC8S[format],
    THREADS: lanes * groups,
    SUMS: sums,
    SUM_TILES: rows / sums,
    MORE_TILES: rows > sums,
    PAIR_SUMS: pairSums(shape, lanes),
    UNROLL: Math.min(lanes, MAX_UNROLLED),
    GROUPS_AT_ONCE: Math.min(groups, MAX_GROUPS),
    VECTORS: vectorsOf(shape, lanes),
  };
}

/** Whether rows are packed for fewer lanes than share an output. */
function isFew({ lanes, packedLanes = lanes }: MatmulCode): boolean {
  return packedLanes !== lanes;
}

/** Whether the last stage of a range of k, or its only one, is only partly filled. */
function hasPart(shape: MatmulShape): boolean {
  return shape.kind !== "cached" && shape.part === true;
}

/** Bytes of workgroup memory of a kernel with more than one lane. */
export function workgroupBytes(shape: MatmulShape, lanes: number): number {
  const packed = shape.kind !== "cached" && shape.dots === "packed";
  const bytes = packed ? PACKED_VEC8_BYTES * shape.rows * shape.stage * buffersOf(shape) : 0;
  return bytes + 16 * vectorsOf(shape, lanes) + 8 * pairSums(shape, lanes);
}

/** Stages of x that workgroup memory holds at a time. */
function buffersOf({ kind }: MatmulShape): number {
  return kind === "prefetch" ? 2 : 1;
}

/** Pairs of sums in workgroup memory of their own: `lane_sums` of lib/matmul_outputs.wgsl. */
function pairSums(shape: MatmulShape, lanes: number): number {
  return shape.pairs === 1 ? sumsAtOnce(shape) * shape.groups * (lanes + 1) : 0;
}

/** Vec4s of workgroup memory that hold x and later the lanes' sums. */
function vectorsOf(shape: MatmulShape, lanes: number): number {
  const { kind, rows, groups } = shape;
  const floats = kind !== "cached" && shape.dots !== "packed";
  const staged = floats ? rows * shape.stage * 2 * buffersOf(shape) : 0;
  const sums = shape.pairs === 1 ? 1 : sumsAtOnce(shape) * groups * (lanes + 1);
  return Math.max(staged, sums);
}

function sumsAtOnce(shape: MatmulShape): number {
  const { rows } = shape;
  const most = maxSums(shape);
  if (rows <= most) return rows;
  return Math.max(...MAX_SUMS[most].filter((sums) => rows % sums === 0));
}

function maxSums(shape: MatmulShape): 7 | 8 {
  return shape.kind === "prefetch" && shape.roomy ? 8 : 7;
}
