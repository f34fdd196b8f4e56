import { bytesOf, type Dispatch, dispatch, kernel, type Operand } from "../../src/gpu/kernel.ts";
import type { Matrix, Tuning } from "../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { shader } from "../shader.ts";
import { type ExpertEpilogue, expertKernel } from "./expert_kernels.ts";
import { type ExpertShape, expertShape, tileSize } from "./expert_shape.ts";
import { unitTile } from "./expert_unit_tiles.ts";
import { expertScales, expertsOnUnits } from "./experts_on_units.ts";
import { jobLists, type Jobs, listWords, mostTiles } from "./job_lists.ts";

const COMBINE = kernel("combine_experts", shader("experts/combine_experts"), {
  bindings: ["y", "weights", "out"],
  constants: ["COLS4", "TOP_K", "ADD"],
});

/** u32 words of the tiles of at most `jobs.rows` rows, on matrix units or not. */
export function tileWords(jobs: Jobs, unit?: MatrixUnit): number {
  const counts = Array.from({ length: jobs.rows }, (_, i) => ({ ...jobs, rows: i + 1 }));
  const words = (some: Jobs) => [
    listWords(some, tileSize(some)),
    ...unit ? [listWords(some, unitTile(some, unit))] : [],
  ];
  return Math.max(...counts.flatMap(words));
}

/**
 * Records the tiles of jobs for `matrix`; none where each is its own. `experts` is u32 [rows, topK].
 */
export function expertTiles(
  lists: { readonly experts: Operand; readonly tiles: Operand },
  jobs: Jobs & {
    readonly matrix: Pick<Matrix, "shards">;
    readonly tuning: Pick<Tuning, "software" | "tensor">;
    readonly label: string;
  },
): Dispatch[] {
  const { matrix, tuning: { tensor } } = jobs;
  const tile = tensor && expertScales(matrix, tensor)
    ? unitTile(jobs, tensor.unit)
    : tileSize(jobs);
  if (tile === 1) return [];
  return [jobLists(lists, { ...jobs, tile, software: jobs.tuning.software })];
}

/**
 * Records `out[job] = epilogue(W_e x[row])` of all jobs, e the job's expert: a dispatch a shard, and where
 * the matrix goes to matrix units and x has no scales one before them.
 *
 * W stacks the experts' matrices, whole experts in a shard. x is [rows, cols], or with `perJob`
 * [rows topK, cols]; out is [rows topK, rows of an expert], half as many for swiglu.
 */
export function expertMatmul(
  { matrix, x, xScales, out, ...lists }: {
    readonly matrix: Matrix;
    readonly x: Operand;
    /** Of x's rows, f32, where who wrote them noted them: for matrix units. */
    readonly xScales?: Operand | undefined;
    readonly out: Operand;
    readonly experts: Operand;
    readonly tiles: Operand;
  },
  shape: Jobs & {
    readonly epilogue: ExpertEpilogue;
    readonly perJob: boolean;
    readonly tuning: Tuning;
    /** Absent: `expertShape`'s. */
    readonly launch?: ExpertShape;
    readonly label: string;
  },
): Dispatch[] {
  const { epilogue, tuning, topK, label } = shape;
  const { cols, lanes } = matrix;
  const expertRows = matrix.rows / shape.numExperts;
  const onUnits = expertsOnUnits({ matrix, x, noted: xScales, out, ...lists }, {
    ...{ ...shape, tensor: tuning.tensor },
    work: (shard) => expertWork(matrix, shape, shard.rows / expertRows),
  });
  if (onUnits) return onUnits;
  const launch = shape.launch ?? expertShape(matrix, shape, tuning);
  const { tile, pairs, groups } = launch;
  const jobs = tile === 1 ? { experts: lists.experts } : { tiles: lists.tiles };
  return matrix.shards.map((shard) =>
    dispatch(expertKernel(matrix, epilogue, launch), {
      buffers: {
        weights: shard.operand,
        x,
        out,
        ...jobs,
        ...shard.scales ? { scales: shard.scales } : {},
      },
      constants: {
        COLS: cols,
        MATRIX_ROWS: expertRows,
        FIRST_EXPERT: shard.first / expertRows,
        SHARD_EXPERTS: shard.rows / expertRows,
        ROW_JOBS: shape.perJob ? 1 : topK,
        OUT_COLS: epilogue === "swiglu" ? expertRows / 2 : expertRows,
        LANES: lanes,
        GROUPS: groups,
      },
      workgroups: [mostTiles(shape, tile), Math.ceil(expertRows / 2 / pairs / groups)],
      label,
      work: expertWork(matrix, shape, shard.rows / expertRows),
    })
  );
}

/** The shard's share of the experts that jobs read: as many as jobs, while there are that many. */
function expertWork({ rows, cols, shards }: Matrix, jobs: Jobs, experts: number) {
  const total = jobs.rows * jobs.topK;
  const share = experts / jobs.numExperts;
  const all = shards.reduce(
    (sum, { operand, scales }) => sum + bytesOf(operand) + (scales ? bytesOf(scales) : 0),
    0,
  );
  const read = Math.min(1, total / jobs.numExperts);
  const expertRows = rows / jobs.numExperts;
  return {
    bytes: share * (all * read + 4 * total * (cols + expertRows)),
    flops: share * 2 * total * cols * expertRows,
  };
}

/** Records `out (+)= sum over a row's experts of weight * y`; y is [rows, topK, cols]. */
export function combineExperts(
  buffers: { readonly y: Operand; readonly weights: Operand; readonly out: Operand },
  { rows, topK, cols, add, label }: {
    readonly rows: number;
    readonly topK: number;
    readonly cols: number;
    readonly add: boolean;
    readonly label: string;
  },
): Dispatch {
  return dispatch(COMBINE, {
    buffers,
    constants: { COLS4: cols / 4, TOP_K: topK, ADD: Number(add) },
    workgroups: [Math.ceil(cols / 4 / 64), rows],
    label,
    work: { bytes: 4 * rows * cols * (topK + (add ? 2 : 1)), flops: 2 * rows * topK * cols },
  });
}
