/** Experts on matrix units where each job is a tile of its own. */
import {
  type Dispatch,
  dispatch,
  type Kernel,
  kernel,
  type Operand,
} from "../../../src/gpu/kernel.ts";
import { isQuantized, type TensorLimits } from "../../../src/gpu/matrix.ts";
import type { MatrixUnit } from "../../../src/gpu/matrix_unit.ts";
import { type Epilogue, notedEpilogue, PLAIN } from "../../fragments/epilogue.ts";
import { choiceCounts } from "../../router/route.ts";
import { shader } from "../../shader.ts";
import { formatOf } from "../../tensor/loads.ts";
import { unitsSlots } from "../../tensor/matmul_tensor.ts";
import type { FewTile } from "../../tensor/matmul_tensor_few.ts";
import { rowCounts, rowFits, rowUnit } from "../../tensor/row/matmul_tensor_row.ts";
import { sharedRows, UNBOUND_BIAS } from "../expert_kernels.ts";
import type { ExpertTensor } from "../expert_tensor.ts";
import { CHOOSING, choosingConstants, type ExpertChoice } from "./expert_choice.ts";

/** The first that fits: two tiles of outputs where there are enough workgroups of them. */
const TILES: readonly FewTile[] = [
  { columns: 2, stage: 128, ahead: 2, branched: true },
  { columns: 1, stage: 128, ahead: 2, branched: true },
  { columns: 1, stage: 64, ahead: 2, branched: true },
  { columns: 1, stage: 32, ahead: 2, branched: true },
];

/** Workgroups of two tiles that keep a large GPU's memory busy. */
const ENOUGH = 400;

/**
 * The workgroup for jobs alone, `cols` numbers wide, with so many outputs together; undefined where the adapter has no
 * room, or weights lie in an order that is not by the unit's rows.
 */
export function expertRowTile(
  unit: MatrixUnit,
  limits: Pick<TensorLimits, "maxComputeWorkgroupStorageSize">,
  { cols, outputs }: { readonly cols: number; readonly outputs: number },
): FewTile | undefined {
  if (unit.m !== unit.n) return undefined;
  const forced = (globalThis as { EXPERT_ROW?: Record<number, FewTile | null> }).EXPERT_ROW?.[cols];
  if (forced === null) return undefined;
  if (forced) return forced;
  // Fewer lanes has a processor's subgroup.
  const tiles = unit.lanes < 16 ? TILES.slice(-1) : TILES;
  return tiles.find((tile) =>
    cols % tile.stage === 0 && rowFits(unit, tile, limits) &&
    (tile.columns === 1 || outputs / (tile.columns * unit.m) >= ENOUGH)
  );
}

const kernels = new Map<string, Kernel>();

/** As of an `expertTensor`, whose tiles are jobs. */
type ExpertRow = Omit<ExpertTensor, "tile" | "tiles"> & {
  readonly tile: FewTile;
  readonly jobs: number;
};

function rowKernel(of: ExpertRow, epilogue: Epilogue, picks: number): Kernel {
  const { unit, tile, matrix: { format = "bf16" } } = of;
  const { columns, stage, ahead, branched } = tile;
  const load = formatOf({ ...of, halved: format === "bf16" });
  const { m, n, k, lanes } = rowUnit(unit);
  const parts = [m, n, k, lanes, columns, stage, ahead, branched ? "branched" : "straight"];
  const picked = picks > 0 ? `_picked_${picks}` : "";
  const name = `expert_row${load.name}_${epilogue.name}_${parts.join("_")}${picked}`;
  return kernels.getOrInsertComputed(name, () => {
    const code = shader("experts/few/expert_row", {
      slots: {
        ...unitsSlots(epilogue),
        ...load.slots,
        place: format === "bf16" ? "experts/place/tiled" : "experts/place/rows",
        jobs: `experts/${picks > 0 ? "few/expert_jobs_picked" : "expert_jobs_alone"}`,
        scores: "router/route_softmax",
      },
      counts: {
        ...rowCounts(unit, tile, { ragged: true, vec8s: load.counts.VEC8S }),
        ...load.counts,
        ...choiceCounts(UNBOUND_BIAS),
        EACH: picks,
      },
    });
    return kernel(name, code, {
      bindings: [
        ...["weights", "x", "out", ...picks > 0 ? CHOOSING.bindings : ["experts"]],
        ...Object.keys(epilogue.buffers),
        ...["w_scales", "x_scales", ...load.bindings],
      ],
      constants: [
        ...[...load.constants, ...CONSTANTS],
        ...picks > 0 ? CHOOSING.constants : [],
      ],
    });
  });
}

const CONSTANTS = [
  ...["COLS", "MATRIX_ROWS", "OUT_COLS", "FIRST_EXPERT", "SHARD_EXPERTS", "ROW_JOBS"],
  ...["ROUTED", "SHARED", "SHARED_NEXT", "SHARED_STEP"],
];

/** What a dispatch reads and writes; see `expertTensor`. */
interface ExpertBuffers {
  readonly x: Operand;
  readonly out: Operand;
  readonly noted?: Operand | undefined;
  /** Of the jobs, u32: read, or where there is a `choice` written. */
  readonly experts: Operand;
  readonly wScales: Operand;
  readonly xScales: Operand;
  /** Where the experts are still to be chosen. */
  readonly choice?: ExpertChoice | undefined;
}

/** Records what `expertTensor` does, to the bit, where each tile is a job. */
export function expertRow(
  { x, out, noted, experts, wScales, xScales, choice }: ExpertBuffers,
  of: ExpertRow,
): Dispatch {
  const { unit, tile, matrix, expertRows, rowJobs, shard, jobs, shared, label, work } = of;
  const { cols, format = "bf16", lanes = 1 } = matrix;
  if (cols % tile.stage !== 0) throw new Error(`${label}: ${cols} columns by ${tile.stage}`);
  const epilogue = noted && of.epilogue === "swiglu"
    ? notedEpilogue("swiglu", noted)
    : PLAIN[of.epilogue];
  const numExperts = shard.rows / expertRows;
  const picks = choice ? Math.ceil(choice.routing.numExperts / unit.lanes) : 0;
  return dispatch(rowKernel(of, epilogue, picks), {
    buffers: {
      ...{ weights: shard.operand, x, out, experts, w_scales: wScales, x_scales: xScales },
      ...epilogue.buffers,
      ...choice ? { logits: choice.logits, shares: choice.weights } : {},
      scales: shard.scales ?? shard.operand,
    },
    constants: {
      ...isQuantized(format) ? { LANES: lanes } : {},
      COLS: cols,
      MATRIX_ROWS: expertRows,
      OUT_COLS: expertRows * epilogue.outShare,
      FIRST_EXPERT: shard.first / expertRows,
      SHARD_EXPERTS: numExperts,
      ...sharedRows(numExperts, expertRows / 2, of),
      ROW_JOBS: rowJobs,
      ...choice ? choosingConstants(choice, { jobs, lanes: unit.lanes, shared }) : {},
    },
    // Where experts are chosen, each row has a tile besides that stores them.
    workgroups: [
      jobs + (choice ? jobs / rowJobs : 0),
      Math.ceil(expertRows / (tile.columns * unit.m)),
    ],
    label,
    ...work ? { work } : {},
  });
}
