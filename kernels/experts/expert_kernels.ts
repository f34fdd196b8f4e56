import { type Kernel } from "../../src/gpu/kernel.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { BLOCK_VEC8S } from "../../src/gpu/weight_format.ts";
import { MAX_UNROLLED } from "../matmul/matmul_lanes.ts";
import type { Dots } from "../matmul/matmul_stages.ts";
import type { ChoiceParameters } from "./route.ts";
import { type Epilogue, type EpilogueParameters, PLAIN } from "../lib/epilogue.ts";
import type { GatedEpilogue } from "../lib/gate.ts";
import { kernelOf } from "../shader.ts";
import type { ExpertShape } from "./expert_shape.ts";

/** What is stored of the outputs; see lib/epilogue.wgsl. */
export type ExpertEpilogue = "store" | GatedEpilogue | Epilogue;

export function expertEpilogue(of: ExpertEpilogue): Epilogue {
  return typeof of === "string" ? PLAIN[of] : of;
}

/**
 * Where a workgroup's jobs come from. "alone": each job is a tile and its expert is known; "chosen": the same, but the
 * workgroup chooses the expert; `Picks`: each subgroup chooses it; "found": a workgroup finds the jobs of its expert;
 * "tiled": there are lists of jobs.
 */
export type JobSource = "alone" | "chosen" | "found" | "tiled" | Picks;

/** Subgroups that choose experts. */
export interface Picks {
  /** Invocations of a subgroup. */
  readonly subgroup: number;
  /** Logits that each of them looks through. */
  readonly each: number;
}

/** What lib/expert_jobs.wgsl takes: where a workgroup has its jobs from. */
export type JobParameters =
  | { readonly jobs: "alone" | "found" | "tiled"; readonly CHOOSES: false }
  | ChoiceParameters & {
    /** A workgroup chooses. */
    readonly jobs: "chosen";
    readonly CHOOSES: true;
    /** Fours of experts that one is compared with without a branch in between. */
    readonly RANKED: number;
  }
  | ChoiceParameters & {
    /** Each subgroup chooses. */
    readonly jobs: "picked";
    readonly CHOOSES: true;
    /** Its invocations, and logits that each of them looks through. */
    readonly SUBGROUP: number;
    readonly EACH: number;
  };

/** What expert_matmul.wgsl takes. */
interface CachedParameters {
  /** Format of the experts' weights. */
  readonly weights: Matrix["format"];
  /** Whether rows are packed for fewer lanes than share an output, and for how many. */
  readonly PACKED_FEW: boolean;
  readonly PACKED_LANES: number;
  /** Vec8s of a packed block of weights. */
  readonly BLOCK_VEC8S: number;
  /** Jobs of a workgroup. */
  readonly TILE: number;
  /** Pairs of outputs of a group of lanes. */
  readonly PAIRS: number;
}

/** What expert_staged.wgsl takes. */
interface StagedParameters extends CachedParameters {
  /** What is multiplied: see lib/dot.wgsl. */
  readonly dots: Dots;
  /** Jobs of a workgroup, as lib/staged_x.wgsl has them. */
  readonly ROWS: number;
  /** Half of the pairs of a group, rounded down, and whether there is only one. */
  readonly PAIR_HALVES: number;
  readonly ONE_PAIR: boolean;
  /** Vec8s of k in a stage of a row of x, and stages that workgroup memory holds at a time. */
  readonly STAGE: number;
  readonly BUFFERS: number;
  /** Blocks of weights that a lane multiplies by a stage. */
  readonly STEPS: number;
  /** Parts of x that an invocation loads of a stage. */
  readonly LOADS: number;
  /** Invocations of a workgroup. */
  readonly THREADS: number;
  /** Jobs whose sums go through workgroup memory at once, and how often that is. */
  readonly SUMS: number;
  readonly SUM_TILES: number;
  /** Lanes that are added without a branch in between. */
  readonly UNROLL: number;
  /** Fours of floats of workgroup memory for x, and then for the lanes' sums. */
  readonly VECTORS: number;
  /** Whether the next stage is loaded while one is multiplied. */
  readonly PREFETCH: boolean;
  /** Parts of a vec8 of x: 2 where an invocation loads a half. */
  readonly PARTS: number;
}

const CACHED = kernelOf<
  CachedParameters & Pick<StagedParameters, "dots"> & JobParameters & EpilogueParameters
>(
  "experts/expert_matmul",
);
const STAGED = kernelOf<StagedParameters & JobParameters & EpilogueParameters>(
  "experts/expert_staged",
);

/** Jobs whose sums go through workgroup memory at once. */
const MAX_SUMS = 4;

/** Fours of experts that one is compared with without a branch in between. */
export const RANKED = 8;

/** Softmax scores have no bias, and no binding of it. */
const SOFTMAX = { scores: "softmax", BIAS: 0 } as const;

/** The parameters of a source of jobs. @param FACTORS whether chosen experts have factors of their own. */
export function jobParameters(jobs: JobSource, FACTORS: boolean): JobParameters {
  if (typeof jobs !== "string") {
    const lanes = { SUBGROUP: jobs.subgroup, EACH: jobs.each };
    return { jobs: "picked", CHOOSES: true, ...SOFTMAX, FACTORS, ...lanes };
  }
  if (jobs !== "chosen") return { jobs, CHOOSES: false };
  return { jobs, CHOOSES: true, ...SOFTMAX, FACTORS, RANKED };
}

export function expertKernel(
  { format, lanes: packedLanes }: Pick<Matrix, "format" | "lanes">,
  epilogue: Epilogue,
  shape: ExpertShape & { readonly lanes: number },
  jobs: JobSource,
  factors = false,
): Kernel {
  const { kind, tile, pairs, groups, lanes } = shape;
  const few = lanes !== packedLanes;
  const staged = kind === "cached" ? [] : [kind, lanes, groups, shape.dots, shape.stage];
  const source = typeof jobs === "string" ? jobs : "picked";
  const found = source === "found" || source === "chosen" ? [source] : [];
  const picked = typeof jobs === "string" ? [] : ["picked", `${jobs.each}x${jobs.subgroup}`];
  const name = [
    "expert_matmul",
    format,
    epilogue.name,
    `${tile}x${pairs}`,
    ...staged,
    ...few ? [`packed${packedLanes}`] : [],
    ...found,
    ...picked,
    ...factors ? ["factors"] : [],
  ]
    .join("_");
  const parameters = {
    weights: format,
    ...jobParameters(jobs, factors),
    ...epilogue.parameters,
    PACKED_FEW: few,
    PACKED_LANES: packedLanes,
    BLOCK_VEC8S: BLOCK_VEC8S[format],
    TILE: tile,
    PAIRS: pairs,
  };
  if (kind === "cached") return CACHED({ ...parameters, dots: "floats" }, { name });
  const { stage, dots } = shape;
  const threads = lanes * groups;
  const PARTS = kind === "staged" && dots === "floats" ? 2 : 1;
  const buffers = kind === "prefetch" ? 2 : 1;
  const sums = Math.min(tile, MAX_SUMS);
  return STAGED({
    ...parameters,
    PREFETCH: kind === "prefetch",
    PARTS,
    dots,
    ROWS: tile,
    PAIR_HALVES: Math.floor(pairs / 2),
    ONE_PAIR: pairs === 1,
    STAGE: stage,
    BUFFERS: buffers,
    STEPS: stage / BLOCK_VEC8S[format] / lanes,
    LOADS: Math.ceil(tile * stage * PARTS / threads),
    THREADS: threads,
    SUMS: sums,
    SUM_TILES: tile / sums,
    UNROLL: Math.min(lanes, MAX_UNROLLED),
    VECTORS: Math.max(
      dots === "packed" ? 0 : tile * stage * 2 * buffers,
      sums * groups * (lanes + 1),
    ),
  }, { name });
}

/**
 * Constants of lib/expert_rows.wgsl. Where there are shared experts, no matrix has pairs of neighbouring rows. The
 * shared experts are one MLP cut along its intermediate outputs: each has consecutive rows of [gate; up], and every
 * `shared`th row of down if the parts of down's rows are counted as rows.
 */
export function sharedRows(
  experts: number,
  half: number,
  { shared = 0, epilogue: { outShare, neighbours = false } }: {
    readonly shared?: number | undefined;
    readonly epilogue: Pick<Epilogue, "outShare" | "neighbours">;
  },
): Readonly<
  Record<"ROUTED" | "ROUTED_STEP" | "SHARED" | "SHARED_NEXT" | "SHARED_STEP", number>
> {
  const stored = outShare === 1;
  return {
    ROUTED: experts - shared,
    ROUTED_STEP: neighbours ? 2 : 1,
    SHARED: shared,
    SHARED_NEXT: stored ? 1 : half,
    SHARED_STEP: stored ? shared : 1,
  };
}
