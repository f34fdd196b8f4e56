import type { KernelParameters } from "../../src/gpu/directives.ts";
import { type Kernel } from "../../src/gpu/kernel.ts";
import { BLOCK_VEC8S, isQuantized, type Matrix } from "../../src/gpu/matrix.ts";
import { choiceCounts, CHOOSING } from "./route.ts";
import { PLAIN } from "../lib/epilogue.ts";
import { kernelOf } from "../shader.ts";
import type { ExpertShape } from "./expert_shape.ts";

/** What is stored of the outputs; see matmul/epilogue.wgsl. */
export type ExpertEpilogue = "store" | "swiglu";

/**
 * Whether each job is a tile, whose expert is known or still to be chosen, by a workgroup or by each subgroup, or a
 * workgroup finds the jobs of its expert, or there are lists.
 */
export type JobSource = "alone" | "chosen" | "found" | "tiled" | Picks;

/** Subgroups that choose experts. */
export interface Picks {
  /** Invocations of a subgroup. */
  readonly subgroup: number;
  /** Logits that each of them looks through. */
  readonly each: number;
}

/** What the kernels of a source of jobs bind and override. */
const JOBS: Readonly<
  Record<
    Exclude<JobSource, Picks> | "picked",
    { readonly bindings: readonly string[]; readonly constants: readonly string[] }
  >
> = {
  alone: { bindings: ["experts"], constants: [] },
  chosen: { ...CHOOSING, constants: [...CHOOSING.constants, "VECTORS"] },
  picked: CHOOSING,
  found: { bindings: ["experts"], constants: ["JOBS"] },
  tiled: { bindings: ["tiles"], constants: [] },
};

const CONSTANTS = [
  "COLS",
  "MATRIX_ROWS",
  "FIRST_EXPERT",
  "SHARD_EXPERTS",
  "ROUTED",
  "SHARED",
  "SHARED_NEXT",
  "SHARED_STEP",
  "ROW_JOBS",
  "OUT_COLS",
  "LANES",
  "GROUPS",
] as const;

/** Jobs whose sums go through workgroup memory at once. */
const MOST_SUMS = 4;

/** Lanes added without a branch in between. */
const MOST_UNROLLED = 16;

/** Fours of experts that one is compared with without a branch in between. */
export const RANKED = 8;

/** The binding of a bias that softmax scores have not. */
export const UNBOUND_BIAS = 0;

export function expertKernel(
  { format, lanes }: Pick<Matrix, "format" | "lanes">,
  epilogue: ExpertEpilogue,
  shape: ExpertShape,
  jobs: JobSource,
): Kernel {
  const { kind, tile, pairs, groups } = shape;
  const staged = kind === "cached" ? [] : [kind, lanes, groups, shape.dots, shape.stage];
  const source = typeof jobs === "string" ? jobs : "picked";
  const found = source === "found" || source === "chosen" ? [source] : [];
  const picked = typeof jobs === "string" ? [] : ["picked", `${jobs.each}x${jobs.subgroup}`];
  const name = [
    "expert_matmul",
    format,
    epilogue,
    `${tile}x${pairs}`,
    ...staged,
    ...found,
    ...picked,
  ]
    .join("_");
  const chooses = source === "chosen" || source === "picked";
  const { bindings, constants } = JOBS[source];
  return kernelOf(kind === "cached" ? "experts/expert_matmul" : "experts/expert_staged", {
    weights: format,
    jobs: source,
    ...PLAIN[epilogue].parameters,
    PACKED_FEW: false,
    ...kind === "cached" ? {} : { dots: shape.dots, PREFETCH: kind === "prefetch" },
    ...countsOf(shape, format, lanes),
    TILE: tile,
    PAIRS: pairs,
    ...chooses ? { scores: "softmax", ...choiceCounts(UNBOUND_BIAS), RANKED } : {},
    ...typeof jobs === "string" ? {} : { SUBGROUP: jobs.subgroup, EACH: jobs.each },
  }, {
    name,
    bindings: ["weights", "x", "out", ...bindings, ...isQuantized(format) ? ["scales"] : []],
    constants: [...CONSTANTS, ...constants],
  });
}

/**
 * Constants of lib/expert_rows.wgsl. The shared experts are one MLP cut along its intermediate outputs: of
 * [gate; up] each has rows one after the other, of down every `shared`th where each part of
 * a row is a row.
 */
export function sharedRows(
  experts: number,
  half: number,
  { shared = 0, epilogue }: {
    readonly shared?: number | undefined;
    readonly epilogue: ExpertEpilogue;
  },
): Readonly<Record<"ROUTED" | "SHARED" | "SHARED_NEXT" | "SHARED_STEP", number>> {
  return {
    ROUTED: experts - shared,
    SHARED: shared,
    SHARED_NEXT: epilogue === "swiglu" ? half : 1,
    SHARED_STEP: epilogue === "swiglu" ? 1 : shared,
  };
}

/** What the texts depend on of the shape. */
function countsOf(
  shape: ExpertShape,
  format: Matrix["format"],
  lanes: number,
): KernelParameters {
  const { kind, tile, pairs, groups } = shape;
  const vec8s = BLOCK_VEC8S[format];
  if (kind === "cached") return { BLOCK_VEC8S: vec8s };
  const { stage, dots } = shape;
  const threads = lanes * groups;
  const parts = kind === "staged" && dots === "floats" ? 2 : 1;
  const buffers = kind === "prefetch" ? 2 : 1;
  const sums = Math.min(tile, MOST_SUMS);
  return {
    ROWS: tile,
    PAIR_HALVES: Math.floor(pairs / 2),
    ONE_PAIR: pairs === 1,
    BLOCK_VEC8S: vec8s,
    STAGE: stage,
    STEPS: stage / vec8s / lanes,
    ...kind === "staged" ? { PARTS: parts } : {},
    LOADS: Math.ceil(tile * stage * parts / threads),
    THREADS: threads,
    BUFFERS: buffers,
    SUMS: sums,
    SUM_TILES: tile / sums,
    UNROLL: Math.min(lanes, MOST_UNROLLED),
    VECTORS: Math.max(
      dots === "packed" ? 0 : tile * stage * 2 * buffers,
      sums * groups * (lanes + 1),
    ),
  };
}
