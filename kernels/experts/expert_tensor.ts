import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import type { Precision } from "../../src/gpu/matrices_on_units.ts";
import type { Matrix, Shard } from "../../src/gpu/matrix.ts";
import { isQuantized } from "../../src/gpu/weight_format.ts";
import type { MatrixUnit } from "../../src/gpu/matrix_unit.ts";
import { kernelOf } from "../shader.ts";
import type { Epilogue, EpilogueParameters } from "../lib/epilogue.ts";
import { formatOf, type LoadParameters } from "../matmul/tensor/loads.ts";
import { spread } from "../matmul/tensor/matmul_tensor.ts";
import {
  type ExpertEpilogue,
  expertEpilogue,
  type JobParameters,
  jobParameters,
  sharedRows,
} from "./expert_kernels.ts";
import { choosingConstants, type ExpertChoice } from "./route.ts";

/** A workgroup of expert_tensor.wgsl. No number of these changes a bit of what it computes. */
export interface ExpertTile {
  /** Jobs of one expert: 1, half of the unit's rows, or a multiple of them. */
  readonly jobs: number;
  /** Subgroups of a workgroup along the jobs and along the columns. */
  readonly grid: readonly [jobs: number, columns: number];
  /** Unit tiles of each subgroup; the jobs are grid[0] * own[0] tiles of the unit's rows, or fewer than one. */
  readonly own: readonly [jobs: number, columns: number];
  /** Numbers of k that are loaded at a time, a multiple of 8 and of the unit's k. */
  readonly stage: number;
  /** Stages that are loaded ahead, 1 or more. */
  readonly ahead: number;
  /** Whether the next stage is loaded before the barrier that the current one waits at, not after it; default false. */
  readonly early?: boolean;
}

/** What expert_tensor.wgsl takes of the unit and the tile. */
interface ExpertTileParameters {
  /** Rows and columns of a matrix product, half of its columns, and its inner dimension. */
  readonly UNIT_M: number;
  readonly UNIT_N: number;
  readonly UNIT_HALF: number;
  readonly UNIT_K: number;
  /** Invocations of a subgroup. */
  readonly LANES: number;
  /** Jobs of a workgroup. */
  readonly TILE: number;
  /** Columns and invocations of a workgroup. */
  readonly TILE_COLS: number;
  readonly THREADS: number;
  /** Subgroups along the jobs, and products of each of them side by side. */
  readonly GRID_R: number;
  readonly OWN_R: number;
  readonly OWN_C: number;
  /** Vec8s of k of a stage, products along k, and stages that are loaded ahead. */
  readonly CHUNKS: number;
  readonly STEPS: number;
  readonly AHEAD: number;
  /** Whether stages are loaded before the barrier. */
  readonly EARLY: boolean;
  /** See lib/row_of_chunk.wgsl. */
  readonly SPREAD: boolean;
  /** Rows from hi of a job to lo, products of a job, and jobs of a product. */
  readonly LO_ROW: number;
  readonly PARTS: number;
  readonly TILE_R: number;
  /** Blocks of weights, vec8s of x, jobs and scales of columns that an invocation loads. */
  readonly W_LOADS: number;
  readonly X_LOADS: number;
  readonly JOB_LOADS: number;
  readonly COLUMN_LOADS: number;
  /**
   * In fours of f32: pitch of a row of sums, size of all sums of a product, and distance from sums of hi to sums of lo.
   */
  readonly SUM_PITCH: number;
  readonly TILE_SUMS: number;
  readonly LO_SUM: number;
  /** Vec8s of f16 of workgroup memory. */
  readonly WORDS: number;
}

interface ExpertTensorParameters extends ExpertTileParameters, LoadParameters {
  /** Whether x is stored as f16, see `expertsTakeF16`. */
  readonly X_IS_F16: boolean;
  /** Whether the scales of the rows are reduced. */
  readonly OUT_SCALES: boolean;
  /** Whether weights are as `tileWeights` leaves them. */
  readonly TILED: boolean;
  /** Whether the stages are no multiple of those ahead. */
  readonly UNEVEN: boolean;
}

const TENSOR = kernelOf<ExpertTensorParameters & JobParameters & EpilogueParameters>(
  "experts/expert_tensor",
);

/** Columns of outputs of a workgroup. */
export function tileColumns({ n }: MatrixUnit, { grid, own }: ExpertTile): number {
  return grid[1] * own[1] * n;
}

/** Invocations of a workgroup; they divide the weights of a stage. */
export function expertTileThreads({ lanes }: MatrixUnit, { grid }: ExpertTile): number {
  return grid[0] * grid[1] * lanes;
}

/** Bytes of workgroup memory, of either precision at most. */
export function expertTileBytes(unit: MatrixUnit, tile: ExpertTile): number {
  const { WORDS, TILE, TILE_COLS } = countsOf(unit, tile, "f32");
  return 16 * WORDS + 4 * (3 * TILE + TILE_COLS);
}

function countsOf(
  unit: MatrixUnit,
  tile: ExpertTile,
  precision: Precision,
  vec8s = 1,
): ExpertTileParameters {
  const { jobs: TILE, grid: [GRID_R, GRID_C], own: [OWN_R, OWN_C] } = tile;
  const { stage: STAGE, ahead: AHEAD } = tile;
  const TILE_COLS = tileColumns(unit, tile);
  const THREADS = expertTileThreads(unit, tile);
  const CHUNKS = STAGE / 8;
  const SUM_PITCH = unit.n / 4 + 1;
  // hi and lo of few jobs are rows of one tile.
  const packed = TILE <= unit.m / 2;
  const LO_ROW = packed ? unit.m / 2 : TILE;
  const PARTS = packed || precision === "f16" ? 1 : 2;
  const TILE_SUMS = PARTS * unit.m * SUM_PITCH;
  return {
    TILE,
    GRID_R,
    OWN_R,
    OWN_C,
    AHEAD,
    TILE_COLS,
    THREADS,
    CHUNKS,
    LO_ROW,
    PARTS,
    LANES: unit.lanes,
    UNIT_M: unit.m,
    UNIT_N: unit.n,
    UNIT_K: unit.k,
    UNIT_HALF: unit.n / 2,
    TILE_R: packed ? LO_ROW : unit.m,
    LO_SUM: (packed ? LO_ROW : unit.m) * SUM_PITCH,
    ...spread(CHUNKS, TILE),
    STEPS: STAGE / unit.k,
    W_LOADS: TILE_COLS * CHUNKS / vec8s / THREADS,
    X_LOADS: Math.ceil(TILE * CHUNKS / THREADS),
    EARLY: tile.early ?? false,
    SUM_PITCH,
    TILE_SUMS,
    JOB_LOADS: Math.ceil(TILE / THREADS),
    COLUMN_LOADS: Math.ceil(TILE_COLS / THREADS),
    // A tile of the unit is whole, with or without lo.
    WORDS: Math.max(
      (TILE_COLS + (packed ? 2 : PARTS) * LO_ROW) * (CHUNKS + 1),
      GRID_R * GRID_C * TILE_SUMS,
    ),
  };
}

function expertKernel(
  of: ExpertTensor,
  { epilogue, uneven, picks, factors }: {
    readonly epilogue: Epilogue;
    /** Logits that each lane looks through where the experts are still to be chosen; else 0. */
    readonly picks: number;
    /** Whether experts have factors of their own. */
    readonly factors: boolean;
    /** Whether the stages are no multiple of those ahead. */
    readonly uneven: boolean;
  },
): Kernel {
  const { unit, tile, tiled, xIsF16 = false } = of;
  const load = formatOf({ ...of, halved: tiled });
  const { parameters: { VEC8S, LOW } } = load;
  const { m, n, k, lanes } = unit;
  const { jobs, grid, own, stage, ahead } = tile;
  const shape = [
    ...[m, n, k, lanes, jobs, ...grid, ...own, stage, ahead],
    ...tile.early ? ["early"] : [],
  ];
  const kind = `${load.name}${xIsF16 ? "_xf16" : ""}_${epilogue.name}`;
  const name = [
    "expert_tensor" + kind,
    ...shape,
    ...uneven ? ["uneven"] : [],
    ...picks > 0 ? [`picked_${picks}`] : [],
    ...factors ? ["factors"] : [],
  ].join("_");
  return TENSOR({
    ...epilogue.parameters,
    OUT_SCALES: epilogue.outScales ?? false,
    X_IS_F16: xIsF16,
    ...countsOf(unit, tile, LOW === 1 ? "f32" : "f16", VEC8S),
    ...load.parameters,
    TILED: tiled,
    UNEVEN: uneven,
    ...jobParameters(
      picks > 0 ? { subgroup: lanes, each: picks } : jobs === 1 ? "alone" : "tiled",
      factors,
    ),
  }, { name });
}

/** What one dispatch multiplies: the experts of a shard by their jobs. */
interface ExpertTensor {
  readonly unit: MatrixUnit;
  readonly tile: ExpertTile;
  /** Default bf16. */
  readonly matrix: Pick<Matrix, "cols"> & Partial<Pick<Matrix, "format" | "lanes">>;
  /** Rows of an expert, even. */
  readonly expertRows: number;
  readonly shard: Shard;
  /** Whether weights are as `tileWeights` leaves them. */
  readonly tiled: boolean;
  /** Most tiles of jobs. */
  readonly tiles: number;
  /** Jobs that a row of x has. */
  readonly rowJobs: number;
  /** The last experts of the only shard that every row has, see `sharedRows`; default 0. */
  readonly shared?: number | undefined;
  readonly epilogue: ExpertEpilogue;
  /** Of x; default f32, for quantized weights always f16. */
  readonly precision?: Precision | undefined;
  /** Whether x is stored as f16, see `expertsTakeF16`; default false. */
  readonly xIsF16?: boolean | undefined;
  readonly label: string;
  readonly work?: Dispatch["work"];
}

/**
 * Records `out[job] = epilogue(W_e x[row])` of the jobs whose expert is in the shard, as `expertMatmul` does; x is
 * [rows, cols]. `lists` are the experts of the jobs where a tile has one, else the tiles of job_lists.wgsl.
 */
export function expertTensor(
  { x, out, lists, wScales, xScales, choice }: {
    readonly x: Operand;
    readonly out: Operand;
    readonly lists: Operand;
    readonly wScales: Operand;
    readonly xScales: Operand;
    /** Where each tile has a job whose expert is still to be chosen: `lists` gets the experts. */
    readonly choice?: ExpertChoice | undefined;
  },
  of: ExpertTensor,
): Dispatch {
  const { unit, tile, matrix, expertRows, shard, label, work } = of;
  const { cols, format = "bf16", lanes = 1 } = matrix;
  const epilogue = expertEpilogue(of.epilogue);
  const experts = shard.rows / expertRows;
  if (cols % tile.stage !== 0) throw new Error(`${label}: ${cols} columns by ${tile.stage}`);
  const uneven = cols / tile.stage % tile.ahead !== 0;
  const factors = choice?.factors;
  const picks = choice ? Math.ceil(choice.routing.numExperts / unit.lanes) : 0;
  return dispatch(expertKernel(of, { epilogue, uneven, picks, factors: factors !== undefined }), {
    buffers: {
      weights: shard.operand,
      x,
      out,
      w_scales: wScales,
      x_scales: xScales,
      ...epilogue.buffers,
      ...tile.jobs === 1 ? { experts: lists } : { tiles: lists },
      ...choice ? { logits: choice.logits, shares: choice.weights } : {},
      ...factors ? { factors } : {},
      ...shard.scales ? { scales: shard.scales } : {},
    },
    constants: {
      ...isQuantized(format) ? { LANES: lanes } : {},
      COLS: cols,
      MATRIX_ROWS: expertRows,
      OUT_COLS: expertRows * epilogue.outShare,
      ...epilogue.constants,
      FIRST_EXPERT: shard.first / expertRows,
      SHARD_EXPERTS: experts,
      ...sharedRows(experts, expertRows / 2, { shared: of.shared, epilogue }),
      ROW_JOBS: of.rowJobs,
      ...choice
        ? choosingConstants(choice, {
          jobs: of.tiles,
          lanes: expertTileThreads(unit, tile),
          shared: of.shared,
        })
        : {},
    },
    // Where workgroups choose the experts, each row has one more tile, whose workgroups store them.
    workgroups: [
      of.tiles + (choice ? of.tiles / of.rowJobs : 0),
      Math.ceil(expertRows / tileColumns(unit, tile)),
    ],
    label,
    ...work ? { work } : {},
  });
}
