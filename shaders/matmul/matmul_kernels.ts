import { expand } from "../../src/gpu/expand.ts";
import { type Kernel, kernel, type Operand } from "../../src/gpu/kernel.ts";
import { CHUNKS, isQuantized, type WeightFormat } from "../../src/gpu/matrix.ts";
import add8 from "./add8.wgsl" with { type: "text" };
import eights from "./dot_eights.wgsl" with { type: "text" };
import floats from "./dot_floats.wgsl" with { type: "text" };
import packed from "./dot_packed.wgsl" with { type: "text" };
import whole from "./dot_whole.wgsl" with { type: "text" };
import add from "./epilogue/finish_add.wgsl" with { type: "text" };
import cap from "./epilogue/finish_cap.wgsl" with { type: "text" };
import geglu from "./epilogue/finish_geglu.wgsl" with { type: "text" };
import store from "./epilogue/finish_store.wgsl" with { type: "text" };
import swiglu from "./epilogue/finish_swiglu.wgsl" with { type: "text" };
import cachedBody from "./matmul.wgsl" with { type: "text" };
import aheadBody from "./matmul_ahead.wgsl" with { type: "text" };
import common from "./matmul_common.wgsl" with { type: "text" };
import lanesBody from "./matmul_lanes.wgsl" with { type: "text" };
import numbersOut from "./matmul_out.wgsl" with { type: "text" };
import type { Dots, MatmulShape } from "./matmul_shape.ts";
import rounded from "./rounded.wgsl" with { type: "text" };
import softCap from "../fragments/soft_cap.wgsl" with { type: "text" };
import stagedBody from "./matmul_staged.wgsl" with { type: "text" };
import { WEIGHTS } from "../weights/weights.ts";

/** What happens to y: WGSL with `fn finish(row, c, half, sum)`, and what it needs besides. */
export interface Epilogue {
  /** Part of the kernel's name: equal names are equal code. */
  readonly name: string;
  readonly code: string;
  /**
   * WGSL with `out`, `fn end_group` and `fn end_rows`; absent: matmul_out.wgsl. Another one is for
   * kernels that add lanes, and two pairs.
   */
  readonly out?: string;
  /** Bound after weights, x and out, in this order. */
  readonly buffers: Readonly<Record<string, Operand>>;
  readonly constants: Readonly<Record<string, number>>;
  /** Columns of `out`, over those of y. */
  readonly outShare: number;
  /** Elements read and written, over those of y. */
  readonly moved: number;
}

/**
 * The plain ones: `out = y`, `out += y`, or of a paired matrix `out = silu(gate) * up` or
 * `out = gelu(gate) * up`.
 */
export type Finish = "store" | "add" | "swiglu" | "geglu";

const NOTHING = { buffers: {}, constants: {} };

export const PLAIN: Readonly<Record<Finish, Epilogue>> = {
  store: { name: "store", code: store, ...NOTHING, outShare: 1, moved: 1 },
  add: { name: "add", code: add, ...NOTHING, outShare: 1, moved: 2 },
  swiglu: { name: "swiglu", code: swiglu, ...NOTHING, outShare: 0.5, moved: 0.5 },
  geglu: { name: "geglu", code: geglu, ...NOTHING, outShare: 0.5, moved: 0.5 },
};

/** `out = most tanh(y / most)`. */
export function finishCap(most: number): Epilogue {
  const code = [softCap, cap].join("\n");
  return { name: "cap", code, buffers: {}, constants: { CAP: most }, outShare: 1, moved: 1 };
}

const CONSTANTS = ["COLS", "SHARD_ROWS", "OUT_COLS", "FIRST", "SPLITS", "LANES", "GROUPS"];

const DOTS: Readonly<Record<Dots, string>> = {
  floats: [eights, floats].join("\n"),
  whole: [rounded, eights, whole].join("\n"),
  packed: [rounded, packed].join("\n"),
};

/** Rows whose sums go through workgroup memory at once. */
const MOST_SUMS = 7;

/** Lanes added without a branch in between. */
const MOST_UNROLLED = 16;

/** Groups whose peaks are compared without a branch in between; their number is a power of two. */
const MOST_GROUPS = 16;

/** What a kernel's text depends on beside its shape. */
export interface MatmulCode {
  readonly format: WeightFormat;
  readonly finish: Epilogue;
  readonly lanes: number;
}

const kernels = new Map<string, Kernel>();

export function matmulKernel(shape: MatmulShape, of: MatmulCode): Kernel {
  const { format, finish, lanes } = of;
  const { rows, pairs, groups } = shape;
  const sizes = [rows, pairs, lanes, groups];
  const stage = shape.kind === "cached" ? [] : [shape.dots, shape.stage];
  const name = ["matmul", shape.kind, format, finish.name, ...sizes, ...stage].join("_");
  return kernels.getOrInsertComputed(name, () => {
    const scales = isQuantized(format) ? ["scales"] : [];
    const out = expand(finish.out ?? numbersOut, { GROUPS_AT_ONCE: Math.min(groups, MOST_GROUPS) });
    // The epilogue first: naga 29 panics where constants follow an array sized by overrides.
    const code = [finish.code, out, common, WEIGHTS[format], add8, body(shape, of)].join("\n");
    return kernel(name, code, {
      bindings: ["weights", "x", "out", ...Object.keys(finish.buffers), ...scales],
      constants: [...CONSTANTS, ...Object.keys(finish.constants)],
    });
  });
}

const BODIES = { cached: cachedBody, staged: stagedBody, ahead: aheadBody } as const;

function body(shape: MatmulShape, of: MatmulCode): string {
  const chunks = CHUNKS[of.format];
  const { lanes } = of;
  const { rows, pairs, groups } = shape;
  const threads = lanes * groups;
  const stage = shape.kind === "cached" ? 0 : shape.stage;
  const floats = shape.kind === "staged" && shape.dots === "floats";
  const parts = floats ? 2 : 1;
  const sums = sumsAtOnce(rows);
  const counts = {
    ROWS: rows,
    PAIRS: pairs,
    CHUNKS: chunks,
    STAGE: stage,
    STEPS: stage / chunks / lanes,
    PARTS: parts,
    FLOATS: floats ? 1 : 0,
    INTEGERS: floats ? 0 : 1,
    LOADS: Math.ceil(rows * stage * parts / threads),
    THREADS: threads,
    ROOMS: roomsOf(shape),
    SUMS: sums,
    UNROLL: Math.min(lanes, MOST_UNROLLED),
    VECTORS: vectorsOf(shape, lanes),
  };
  const [text, done] = lanes === 1
    ? [[`var<workgroup> sums: array<vec2<f32>, ${threads * rows * pairs}>;`], alone(rows, pairs)]
    : [[expand(lanesBody, counts)], shared(rows, pairs, sums)];
  const dots = shape.kind === "cached" ? [] : [DOTS[shape.dots]];
  const main = expand([...dots, BODIES[shape.kind]].join("\n"), counts);
  return [...text, main.replace("$DONE", done.join("\n  "))].join("\n");
}

/** Bytes of workgroup memory of a kernel with more than one lane. */
export function workgroupBytes(shape: MatmulShape, lanes: number): number {
  const packed = shape.kind !== "cached" && shape.dots === "packed";
  const bytes = packed ? 20 * shape.rows * shape.stage * roomsOf(shape) : 0;
  return bytes + 16 * vectorsOf(shape, lanes);
}

/** Stages of x that workgroup memory holds at a time. */
function roomsOf({ kind }: MatmulShape): number {
  return kind === "ahead" ? 2 : 1;
}

/** Vectors of four floats for x, and then for the lanes' sums. */
function vectorsOf(shape: MatmulShape, lanes: number): number {
  const { kind, rows, groups } = shape;
  const floats = kind !== "cached" && shape.dots !== "packed";
  const staged = floats ? rows * shape.stage * 2 * roomsOf(shape) : 0;
  return Math.max(staged, sumsAtOnce(rows) * groups * (lanes + 1));
}

function sumsAtOnce(rows: number): number {
  if (rows <= MOST_SUMS) return rows;
  return Math.max(...[2, 3, 4, 5, 6, 7].filter((sums) => rows % sums === 0));
}

/**
 * An invocation that makes its outputs alone. They wait in its part of workgroup memory for a loop,
 * because `finish` may be long and software compiles slowly.
 */
function alone(rows: number, pairs: number): string[] {
  const count = rows * pairs;
  return [
    ...grid(pairs, rows).map(([p, r], i) =>
      `sums[thread * ${count}u + ${i}u] = vec2<f32>(a${p}_${r}, b${p}_${r});`
    ),
    `for (var i = 0u; i < ${count}u; i++) {`,
    `  let c = pair + i / ${rows}u;`,
    `  let r = row + i % ${rows}u;`,
    `  if (c < half && r < rows) {`,
    `    finish(tile.z * rows + r, c, half, sums[thread * ${count}u + i]);`,
    `  }`,
    `}`,
  ];
}

/** Calls of `add_lanes`, two pairs of `sums` rows each. */
function shared(rows: number, pairs: number, sums: number): string[] {
  return grid(pairs / 2, rows / sums).map(([h, part]) => {
    const first = part * sums;
    const vectors = Array.from({ length: sums }, (_, s) => {
      const [p, r] = [2 * h, first + s];
      return `vec4<f32>(a${p}_${r}, b${p}_${r}, a${p + 1}_${r}, b${p + 1}_${r})`;
    });
    const column = `tile.y * GROUPS * ${pairs}u + ${2 * h}u`;
    return `add_lanes(thread, row + ${first}u, tile.z, ${column}, ${pairs}u, ${vectors});`;
  });
}

function grid(a: number, b: number): [number, number][] {
  return Array.from({ length: a * b }, (_, i) => [Math.floor(i / b), i % b]);
}
