import {
  bytesOf,
  type Cost,
  type Dispatch,
  dispatch,
  type Kernel,
  type Operand,
} from "../../src/gpu/kernel.ts";
import { requireLoaded } from "../../src/gpu/matrices_on_units.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import type { Tuning } from "../../src/gpu/tuning.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { choosingConstants, type ExpertChoice, type Routing } from "./route.ts";
import { kernelOf } from "../shader.ts";
import {
  type ExpertEpilogue,
  expertEpilogue,
  expertKernel,
  type JobSource,
  type Picks,
  RANKED,
  sharedRows,
} from "./expert_kernels.ts";
import { expertLanes, expertShape, tileSize } from "./expert_shape.ts";
import { unitTile } from "./expert_unit_tiles.ts";
import { expertScales, expertsOnUnits } from "./experts_on_units.ts";
import { jobLists, type Jobs, listWords, maxTiles, type TileSize } from "./job_lists.ts";

export type { ExpertChoice };

interface CombineParameters {
  /** Whether the biases of the experts are added to their outputs. */
  readonly BIASED: boolean;
}

function combineKernel(BIASED: boolean): Kernel {
  return kernelOf<CombineParameters>("experts/combine_experts")({ BIASED }, {
    name: BIASED ? "combine_experts_bias" : "combine_experts",
    bindings: ["y", "weights", "out", ...BIASED ? ["bias", "experts"] : []],
    constants: ["COLS4", "TOP_K", "ADD"],
  });
}

/** Jobs, and the tile size: jobs of an expert that share a tile; see `expertTile`. */
type TiledJobs = Jobs & { readonly tile: TileSize };

/** Jobs of an expert that share a tile in the matmul by `matrix`; 1: each is alone. */
export function expertTile(
  jobs: Jobs,
  matrix: Pick<Matrix, "format" | "shards">,
  tuning: Tuning,
): TileSize {
  const { tensor } = tuning;
  if (tensor && expertScales(matrix, tensor)) return unitTile(jobs, tensor.unit);
  return tileSize(jobs, tuning, matrix.format);
}

/** u32 words of the tiles of at most `jobs.rows` rows, whatever the format of the matrices, on `unit` or not. */
export function tileWords(
  jobs: Jobs,
  tuning: Pick<Tuning, "software" | "dot4I8" | "lanes" | "workgroupBytes">,
  unit?: MatrixUnit,
): number {
  const counts = Array.from({ length: jobs.rows }, (_, i) => ({ ...jobs, rows: i + 1 }));
  const words = (some: Jobs) => [
    ...(["bf16", "q8", "mxfp4"] as const).map((format) =>
      listWords(some, tileSize(some, tuning, format))
    ),
    ...unit ? [listWords(some, unitTile(some, unit))] : [],
  ];
  return Math.max(...counts.flatMap(words));
}

/** Whether `expertMatmul` reads lists of jobs in tiles of `jobs.tile`. */
export function readsTiles(
  matrix: Pick<Matrix, "shards">,
  jobs: TiledJobs,
  tuning: Tuning,
): boolean {
  return expertScales(matrix, tuning.tensor) ? jobs.tile > 1 : sourceOf(jobs, tuning) === "tiled";
}

/** Records the lists of jobs where expertMatmul reads any for `matrix`. `experts` is u32 [rows, topK]. */
export function expertTiles(
  lists: { readonly experts: Operand; readonly tiles: Operand },
  { matrix, tuning, ...jobs }: TiledJobs & {
    readonly matrix: Pick<Matrix, "shards">;
    readonly tuning: Tuning;
    readonly label: string;
  },
): Dispatch[] {
  return readsTiles(matrix, jobs, tuning) ? [jobLists(lists, { ...jobs, tuning })] : [];
}

/** Most jobs among which a workgroup looks for those of its expert on hardware, one per lane. */
const MAX_FOUND = 128;

/** Fours of logits that a workgroup compares, rounded up to a multiple of RANKED. */
function vectorsOf(experts: number): number {
  return Math.ceil(experts / 4 / RANKED) * RANKED;
}

/** Whether `expertMatmul` can choose the experts of rows by logits alone: where each job is a tile, on hardware. */
export function canChoose(
  matrix: Pick<Matrix, "shards">,
  { scores, groups, topGroups }: Routing,
  { tile, biased, factors = false, tuning }: {
    readonly tile: TileSize;
    /** Whether its epilogue binds biases. */
    readonly biased: boolean;
    /** Whether experts have factors of their own; default: they have none. */
    readonly factors?: boolean;
    readonly tuning: Tuning;
  },
): boolean {
  const buffers = expertScales(matrix, tuning.tensor)
    ? CHOOSING_BUFFERS.units
    : CHOOSING_BUFFERS.others + Number(biased);
  return tile === 1 && !tuning.software && tuning.storageBuffers >= buffers + Number(factors) &&
    scores === "softmax" && topGroups === groups;
}

/**
 * Storage buffers of a matmul that chooses experts: on matrix units with biases or the scales of its outputs, elsewhere
 * without biases.
 */
const CHOOSING_BUFFERS = { units: 10, others: 7 };

/** How the subgroups of a workgroup of `threads` choose experts; undefined if they cannot. */
function picksOf(
  { routing }: ExpertChoice,
  threads: number,
  { subgroup }: Tuning,
): Picks | undefined {
  if (!subgroup || threads % subgroup !== 0) return undefined;
  return { subgroup, each: Math.ceil(routing.numExperts / subgroup) };
}

/** Where jobs come from. For few jobs, a dispatch that makes lists takes longer than finding jobs in each workgroup. */
function sourceOf({ rows, topK, tile }: TiledJobs, tuning: Tuning): JobSource {
  if (tile === 1) return "alone";
  const lanes = Math.min(MAX_FOUND, tuning.lanes * tuning.groups);
  return !tuning.software && rows * topK <= lanes ? "found" : "tiled";
}

/**
 * Records `out[job] = epilogue(W_e x[row])` of all jobs, e the job's expert: one dispatch per shard, and one before
 * them for the scales of x if matrix units multiply and x has none.
 *
 * W stacks the experts' matrices, whole experts in a shard. x is [rows, cols], or with `perJob`
 * [rows topK, cols]; out is [rows topK, rows of an expert], half as many for a gate.
 */
export function expertMatmul(
  { matrix, x, xScales, xIsF16, out, ...lists }: {
    readonly matrix: Matrix;
    readonly x: Operand;
    /** Of x's rows, f32, where the kernel that wrote x stored them; for matrix units. */
    readonly xScales?: Operand | undefined;
    /** Whether x is stored as `expertsTakeF16` says; default false. */
    readonly xIsF16?: boolean | undefined;
    readonly out: Operand;
    readonly experts: Operand;
    readonly tiles: Operand;
    /** Present where experts are still to be chosen, see `canChoose`: gets what `route` makes of the logits. */
    readonly choice?: ExpertChoice | undefined;
  },
  shape: TiledJobs & {
    readonly epilogue: ExpertEpilogue;
    readonly perJob: boolean;
    /** The last experts that every row has, see `sharedRows`; default 0. Where there are any, W is one shard. */
    readonly shared?: number;
    readonly tuning: Tuning;
    readonly label: string;
  },
): Dispatch[] {
  const { tile, tuning, topK, label } = shape;
  const epilogue = expertEpilogue(shape.epilogue);
  const { cols } = matrix;
  const lanes = expertLanes(matrix, shape.tuning);
  const expertRows = matrix.rows / shape.numExperts;
  const { choice } = lists;
  const factors = choice?.factors;
  const onUnits = expertsOnUnits({ matrix, x, xScales, xIsF16, out, ...lists }, {
    ...shape,
    tensor: tuning.tensor,
    work: (shard) => expertWork(matrix, shape, shard.rows / expertRows),
  });
  if (onUnits) return onUnits;
  requireLoaded(matrix, tuning.tensor, label);
  const total = shape.rows * topK;
  const picks = choice && picksOf(choice, tuning.groups * tuning.lanes, tuning);
  const outputs = total * expertRows;
  const launch = expertShape(matrix, { tile, outputs, picked: picks !== undefined }, tuning);
  const { pairs, groups } = launch;
  const source = choice ? picks ?? "chosen" : sourceOf(shape, tuning);
  const jobs = source === "tiled" ? { tiles: lists.tiles } : { experts: lists.experts };
  const choosing = choice &&
    choosingConstants(choice, { jobs: total, lanes: lanes * groups, shared: shape.shared });
  const ranges = Math.ceil(expertRows / 2 / pairs / groups);
  return matrix.shards.map((shard) =>
    dispatch(expertKernel(matrix, epilogue, { ...launch, lanes }, source, factors !== undefined), {
      buffers: {
        weights: shard.operand,
        x,
        out,
        ...epilogue.buffers,
        ...jobs,
        ...choice ? { logits: choice.logits, shares: choice.weights } : {},
        ...factors ? { factors } : {},
        ...shard.scales ? { scales: shard.scales } : {},
      },
      constants: {
        COLS: cols,
        MATRIX_ROWS: expertRows,
        FIRST_EXPERT: shard.first / expertRows,
        SHARD_EXPERTS: shard.rows / expertRows,
        ...sharedRows(shard.rows / expertRows, expertRows / 2, { shared: shape.shared, epilogue }),
        ...epilogue.constants,
        ROW_JOBS: shape.perJob ? 1 : topK,
        OUT_COLS: expertRows * epilogue.outShare,
        LANES: lanes,
        GROUPS: groups,
        ...source === "found" ? { JOBS: total } : {},
        ...choosing,
        ...choice && !picks ? { VECTORS: vectorsOf(choice.routing.numExperts) } : {},
      },
      // Where workgroups choose the experts, each row has one more workgroup, which stores them.
      workgroups: choice ? [total * ranges + shape.rows] : [
        source === "found" ? total : maxTiles(shape, tile),
        ranges,
      ],
      label,
      work: expertWork(matrix, shape, shard.rows / expertRows),
    })
  );
}

/** The cost of a shard: its share of the experts that jobs read, taken to be as many as jobs, but at most all. */
export function expertWork(
  { rows, cols, shards }: Matrix,
  { shared = 0, ...jobs }: Jobs & { readonly shared?: number },
  experts: number,
): Cost {
  const total = jobs.rows * jobs.topK;
  const share = experts / jobs.numExperts;
  const all = shards.reduce(
    (sum, { operand, scales }) => sum + bytesOf(operand) + (scales ? bytesOf(scales) : 0),
    0,
  );
  const routed = Math.min(jobs.numExperts - shared, total - shared * jobs.rows);
  const read = (routed + shared) / jobs.numExperts;
  const expertRows = rows / jobs.numExperts;
  return {
    bytes: share * (all * read + 4 * total * (cols + expertRows)),
    flops: share * 2 * total * cols * expertRows,
  };
}

/**
 * Records `out (+)= sum over a row's experts of weight * y`; y is [rows, topK, cols].
 *
 * @param bias values [numExperts, cols] of the row's experts, u32 [rows, topK], that are added to y.
 */
export function combineExperts(
  { bias, ...buffers }: {
    readonly y: Operand;
    readonly weights: Operand;
    readonly out: Operand;
    readonly bias?: { readonly values: Operand; readonly experts: Operand } | undefined;
  },
  { rows, topK, cols, add, label }: {
    readonly rows: number;
    readonly topK: number;
    readonly cols: number;
    readonly add: boolean;
    readonly label: string;
  },
): Dispatch {
  return dispatch(combineKernel(bias !== undefined), {
    buffers: { ...buffers, ...bias && { bias: bias.values, experts: bias.experts } },
    constants: { COLS4: cols / 4, TOP_K: topK, ADD: Number(add) },
    workgroups: [Math.ceil(cols / 4 / 64), rows],
    label,
    work: { bytes: 4 * rows * cols * (topK + (add ? 2 : 1)), flops: 2 * rows * topK * cols },
  });
}
