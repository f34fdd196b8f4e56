import { expand } from "../src/gpu/expand.ts";
import { type Kernel, kernel } from "../src/gpu/kernel.ts";
import { CHUNKS, isQuantized, type WeightFormat } from "../src/gpu/matrix.ts";
import add from "./finish_add.wgsl" with { type: "text" };
import store from "./finish_store.wgsl" with { type: "text" };
import swiglu from "./finish_swiglu.wgsl" with { type: "text" };
import cachedBody from "./matmul.wgsl" with { type: "text" };
import common from "./matmul_common.wgsl" with { type: "text" };
import lanesBody from "./matmul_lanes.wgsl" with { type: "text" };
import type { MatmulShape } from "./matmul_shape.ts";
import stagedBody from "./matmul_staged.wgsl" with { type: "text" };
import { WEIGHTS } from "./weights.ts";

/** What happens to y: `out = y`, `out += y`, or `out = silu(gate) * up` of a paired matrix. */
export type Finish = "store" | "add" | "swiglu";

const FINISH: Readonly<Record<Finish, string>> = { store, add, swiglu };

type Binding = "weights" | "x" | "out" | "scales";
type Constant = "COLS" | "SHARD_ROWS" | "OUT_COLS" | "FIRST" | "SPLITS" | "LANES" | "GROUPS";

const FLOAT: readonly Binding[] = ["weights", "x", "out"];
const CONSTANTS: readonly Constant[] = [
  "COLS",
  "SHARD_ROWS",
  "OUT_COLS",
  "FIRST",
  "SPLITS",
  "LANES",
  "GROUPS",
];

type MatmulKernel = Kernel<Binding, Constant>;

/** Rows whose sums go through workgroup memory at once. */
const MOST_SUMS = 7;

/** Lanes added without a branch in between. */
const MOST_UNROLLED = 16;

/** What a kernel's text depends on beside its shape. */
export interface MatmulCode {
  readonly format: WeightFormat;
  readonly finish: Finish;
  readonly pairs: number;
  readonly lanes: number;
  readonly groups: number;
}

const kernels = new Map<string, MatmulKernel>();

export function matmulKernel(shape: MatmulShape, of: MatmulCode): MatmulKernel {
  const { format, finish, pairs, lanes, groups } = of;
  const sizes = [shape.rows, pairs, lanes, groups];
  const stage = shape.kind === "staged" ? [shape.stage] : [];
  const name = ["matmul", shape.kind, format, finish, ...sizes, ...stage].join("_");
  return kernels.getOrInsertComputed(
    name,
    () =>
      kernel(name, [WEIGHTS[format], common, body(shape, of), FINISH[finish]].join("\n"), {
        bindings: isQuantized(format) ? [...FLOAT, "scales"] : FLOAT,
        constants: CONSTANTS,
      }),
  );
}

function body(shape: MatmulShape, of: MatmulCode): string {
  const chunks = CHUNKS[of.format];
  const { pairs, lanes, groups } = of;
  const { rows } = shape;
  const threads = lanes * groups;
  const stage = shape.kind === "staged" ? shape.stage : 0;
  const sums = sumsAtOnce(rows);
  const counts = {
    ROWS: rows,
    PAIRS: pairs,
    CHUNKS: chunks,
    STAGE: stage,
    STEPS: stage / chunks / lanes,
    LOADS: Math.ceil(rows * stage * 2 / threads),
    THREADS: threads,
    SUMS: sums,
    UNROLL: Math.min(lanes, MOST_UNROLLED),
    VECTORS: Math.max(rows * stage * 2, sums * (threads + groups)),
  };
  const [text, done] = lanes === 1
    ? [[], alone(rows, pairs)]
    : [[expand(lanesBody, counts)], shared(rows, pairs, sums)];
  const main = expand(shape.kind === "staged" ? stagedBody : cachedBody, counts);
  return [...text, main.replace("$DONE", done.join("\n  "))].join("\n");
}

function sumsAtOnce(rows: number): number {
  if (rows <= MOST_SUMS) return rows;
  return Math.max(...[2, 3, 4, 5, 6, 7].filter((sums) => rows % sums === 0));
}

/** An invocation that makes its outputs alone. */
function alone(rows: number, pairs: number): string[] {
  return grid(pairs, rows).map(([p, r]) =>
    `if (pair + ${p}u < half && row + ${r}u < rows) { ` +
    `finish(tile.z * rows + row + ${r}u, pair + ${p}u, half, vec2<f32>(a${p}_${r}, b${p}_${r})); }`
  );
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
