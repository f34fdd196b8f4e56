import { type Kernel } from "../../src/gpu/kernel.ts";
import type { KernelParameters } from "../../src/gpu/directives.ts";
import { BLOCK_VEC8S, isQuantized, type WeightFormat } from "../../src/gpu/matrix.ts";
import { kernelOf } from "../shader.ts";
import type { Epilogue } from "../lib/epilogue.ts";
import { type Hold, PLAIN_ROWS } from "./hold/hold.ts";
import type { MatmulShape } from "./matmul_shape.ts";

const CONSTANTS = ["COLS", "MATRIX_ROWS", "OUT_COLS", "FIRST", "SPLIT_K", "LANES", "GROUPS"];

/** Rows whose sums go through workgroup memory at once, where 16 KiB must do and where there is more. */
const MOST_SUMS = { 7: [2, 3, 4, 5, 6, 7], 8: [2, 3, 4, 5, 6, 7, 8] } as const;

/** Lanes added without a branch in between. */
const MOST_UNROLLED = 16;

/** Groups whose partial results are joined without a branch in between; their number is a power of two. */
const MOST_GROUPS = 16;

/** What a kernel's text depends on beside its shape. */
export interface MatmulCode {
  readonly format: WeightFormat;
  readonly epilogue: Epilogue;
  /** See `lanesOf`. */
  readonly lanes: number;
  /** Lanes of the matrix; default `lanes`. */
  readonly packedLanes?: number;
  /** How a resident kernel brings x to workgroup memory; default as it is. */
  readonly hold?: Hold | undefined;
}

export function matmulKernel(shape: MatmulShape, of: MatmulCode): Kernel {
  const { format, epilogue, lanes, hold = PLAIN_ROWS } = of;
  const { rows, pairs, groups } = shape;
  const sizes = [rows, pairs, lanes, groups];
  const stage = shape.kind === "cached" ? [] : [shape.dots, shape.stage];
  const part = [...hasPart(shape) ? ["part"] : [], ...isFew(of) ? [`packed${of.packedLanes}`] : []];
  const resident = shape.kind === "resident" ? [shape.ahead, ...hold.name ? [hold.name] : []] : [];
  const name = [
    "matmul",
    shape.kind,
    format,
    epilogue.name,
    ...sizes,
    ...stage,
    ...part,
    ...resident,
    ...mostSums(shape) > 7 && rows === mostSums(shape) ? ["sums"] : [],
  ]
    .join("_");
  const scales = isQuantized(format) ? ["scales"] : [];
  return kernelOf(FILES[shape.kind], parametersOf(shape, of), {
    name,
    bindings: [
      ...["weights", "x", "out", ...Object.keys(epilogue.buffers)],
      ...[...Object.keys(hold.buffers), ...scales],
    ],
    constants: [
      ...CONSTANTS,
      ...Object.keys(epilogue.constants),
      ...Object.keys(hold.constants),
    ],
  });
}

const FILES = {
  cached: "matmul/matmul",
  staged: "matmul/matmul_staged",
  prefetch: "matmul/matmul_prefetch",
  resident: "matmul/matmul_resident",
} as const;

/** How the lanes' sums are added: see matmul/ending.wgsl. */
function endingOf({ pairs }: MatmulShape, lanes: number): "one_lane" | "pair" | "lanes" {
  if (lanes === 1) return "one_lane";
  return pairs === 1 ? "pair" : "lanes";
}

/**
 * Whether an invocation has half a vec8 of floats at most to bring. Where it has more, two at a time are faster: with o of
 * Qwen3-30B-A3B a layer takes 53.0 us of 54.4 on an H200.
 */
function takesHalves(shape: MatmulShape, lanes: number): boolean {
  return shape.kind === "resident" && shape.dots === "floats" &&
    2 * shape.rows * shape.stage <= lanes * shape.groups;
}

/** What the texts of matmul/ depend on. */
function parametersOf(shape: MatmulShape, of: MatmulCode): KernelParameters {
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
    UNROLL: Math.min(lanes, MOST_UNROLLED),
    GROUPS_AT_ONCE: Math.min(groups, MOST_GROUPS),
    VECTORS: vectorsOf(shape, lanes),
    ...shape.kind === "cached" ? {} : stagedParameters(shape, of),
    ...epilogue.parameters,
  };
}

/** What those depend on besides whose x passes through workgroup memory. */
function stagedParameters(
  shape: Exclude<MatmulShape, { readonly kind: "cached" }>,
  { format, lanes, hold = PLAIN_ROWS }: MatmulCode,
): KernelParameters {
  const { kind, rows, groups, stage, dots } = shape;
  const threads = lanes * groups;
  const steps = stage / BLOCK_VEC8S[format] / lanes; // blocks of a row of W, of a lane
  const parts = kind === "staged" && dots === "floats" ? 2 : 1;
  const staged = {
    dots,
    WHOLE: !hasPart(shape),
    STAGE: stage,
    BUFFERS: buffersOf(shape),
    LOADS: Math.ceil(rows * stage * parts / threads),
  };
  if (shape.kind === "resident") {
    return {
      ...staged,
      hold: hold.kind,
      HALVES: hold.kind === "combined" && takesHalves(shape, lanes),
      HALF_LOADS: Math.ceil(2 * rows * stage / threads),
      AHEAD: shape.ahead,
      TURNS: steps > shape.ahead,
      ...hold.parameters({ threads }),
    };
  }
  return { ...staged, STEPS: steps, ...kind === "staged" ? { PARTS: parts } : {} };
}

/** Whether rows are packed for fewer lanes than share an output. */
function isFew({ lanes, packedLanes = lanes }: MatmulCode): boolean {
  return packedLanes !== lanes;
}

/** Whether the last stage of a range of k, or its only one, is a part of one. */
function hasPart(shape: MatmulShape): boolean {
  return shape.kind !== "cached" && shape.part === true;
}

/** Bytes of workgroup memory of a kernel with more than one lane. */
export function workgroupBytes(shape: MatmulShape, lanes: number): number {
  const packed = shape.kind !== "cached" && shape.dots === "packed";
  const bytes = packed ? 20 * shape.rows * shape.stage * buffersOf(shape) : 0;
  return bytes + 16 * vectorsOf(shape, lanes) + 8 * pairSums(shape, lanes);
}

/** Stages of x that workgroup memory holds at a time. */
function buffersOf({ kind }: MatmulShape): number {
  return kind === "prefetch" ? 2 : 1;
}

/** Sums of pairs that have workgroup memory of their own: ending.wgsl. */
function pairSums(shape: MatmulShape, lanes: number): number {
  return shape.pairs === 1 ? sumsAtOnce(shape) * shape.groups * (lanes + 1) : 0;
}

/** Vectors of four floats for x, and then for the lanes' sums. */
function vectorsOf(shape: MatmulShape, lanes: number): number {
  const { kind, rows, groups } = shape;
  const floats = kind !== "cached" && shape.dots !== "packed";
  const staged = floats ? rows * shape.stage * 2 * buffersOf(shape) : 0;
  const sums = shape.pairs === 1 ? 1 : sumsAtOnce(shape) * groups * (lanes + 1);
  return Math.max(staged, sums);
}

function sumsAtOnce(shape: MatmulShape): number {
  const { rows } = shape;
  const most = mostSums(shape);
  if (rows <= most) return rows;
  return Math.max(...MOST_SUMS[most].filter((sums) => rows % sums === 0));
}

function mostSums(shape: MatmulShape): 7 | 8 {
  return shape.kind === "prefetch" && shape.roomy ? 8 : 7;
}
