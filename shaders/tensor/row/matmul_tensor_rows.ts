import { type Dispatch, dispatch, type Kernel, kernel } from "../../../src/gpu/kernel.ts";
import type { MatrixUnit } from "../../../src/gpu/matrix_unit.ts";
import { type Epilogue, PLAIN } from "../../fragments/epilogue.ts";
import { shader } from "../../shader.ts";
import { formatOf } from "../loads.ts";
import {
  declared,
  preparedCounts,
  type TensorBuffers,
  tensorConstants,
  type TensorMatmul,
  tensorWork,
  unitsSlots,
} from "../matmul_tensor.ts";

export type XMode = "staged" | "halves";

export interface RowsTile {
  readonly columns: number;
  readonly stage: number;
  readonly ahead: number;
  readonly branched: boolean;
  readonly looped: boolean;
  readonly mode: XMode;
  readonly subs: number;
  /** 1 or ahead */
  readonly sets: number;
}

type RowsMatmul = Omit<TensorMatmul, "tile"> & { readonly tile: RowsTile };

/** The unit's columns, and tiles of x that hi and lo take. */
export function unitOf({ n, narrow = n }: MatrixUnit, rows: number): readonly [number, number] {
  return rows <= narrow / 2 ? [narrow, 1] : rows <= n / 2 ? [n, 1] : [n, 2];
}

export function rowsCounts(
  unit: MatrixUnit,
  { columns, stage, ahead, branched, looped, mode, subs, sets }: RowsTile,
  { rows, ragged }: { readonly rows: number; readonly ragged: boolean },
) {
  const { m, k, lanes } = unit;
  const [n, X_TILES] = unitOf(unit, rows);
  const [CHUNKS, TILE_COLS] = [stage / 8, columns * m];
  const X_CHUNKS = CHUNKS / subs;
  const inMemory = mode === "staged" || mode === "halves";
  const X_LOADS = inMemory ? Math.ceil(rows * X_CHUNKS / lanes) : 0;
  const steps = stage / subs / k;
  return {
    ...{ X_ROWS: rows, OWN_C: columns, STAGE: stage, AHEAD: ahead, STEPS: stage / k, SUBS: subs },
    ...{ CHUNKS, X_CHUNKS, TILE_COLS, LANES: lanes, UNIT_M: m, UNIT_N: n, UNIT_K: k, X_TILES },
    ...{ UNIT_HALF: m / 2, IN_MEMORY: Number(inMemory), STAGED: Number(mode === "staged") },
    ...{ HALVES: Number(mode === "halves"), PAIRS: Number(mode !== "staged") },
    ...{ X_SETS: sets, XS: Number(sets > 1), X_AHEAD: sets },
    HI_STEP: X_TILES === 1 ? 2 : 1,
    LO_STEP: X_TILES === 1 ? 1 : n,
    SUM_WORDS: m * n / 4,
    W_LOADS: Math.ceil(TILE_COLS * CHUNKS / lanes),
    X_LOADS,
    W_PART: Number(TILE_COLS * CHUNKS % lanes !== 0),
    X_PART: Number(rows * X_CHUNKS % lanes !== 0),
    WEIGHT_WORDS: Math.max(TILE_COLS * (CHUNKS + 1), columns * X_TILES * m * n / 4),
    X_WORDS: n * X_TILES * (X_CHUNKS + 1),
    TURNS: Math.ceil(rows * columns * m / 2 / lanes),
    ...{ RAGGED: Number(ragged), BRANCHED: Number(branched), STRAIGHT: Number(!branched) },
    ...{ LOOPED: Number(looped), UNROLLED: Number(!looped) },
    SUB_STEPS: steps,
    OWN_STEPS: looped ? 1 : steps,
  };
}

const kernels = new Map<string, Kernel>();

function rowsKernel(of: RowsMatmul, epilogue: Epilogue): Kernel {
  const { unit, tile, matrix, rows, splitK = 1 } = of;
  const format = formatOf(of);
  const { columns, stage, ahead, branched, looped, mode, subs, sets } = tile;
  const ragged = branched || matrix.cols / splitK % (stage * ahead) !== 0;
  const parts = [rows, columns, stage, ahead, subs, sets, mode, branched, looped, ragged];
  const name = `matmul_tensor_rows${format.name}_${epilogue.name}_${parts.join("_")}`;
  return kernels.getOrInsertComputed(name, () => {
    const counts = rowsCounts(unit, tile, { rows, ragged });
    const code = shader("tensor/row/matmul_tensor_rows", {
      slots: { ...unitsSlots(epilogue), ...format.slots },
      counts: { ...counts, ...preparedCounts(epilogue), ...format.counts, ...epilogue.counts },
    });
    return kernel(name, code, declared(format, epilogue));
  });
}

export function matmulTensorRows(
  { x, out, wScales, xScales }: TensorBuffers,
  of: RowsMatmul,
): Dispatch {
  const { unit, tile, matrix: { cols }, rows, shard, splitK = 1, label } = of;
  const epilogue = of.epilogue ?? PLAIN.store;
  if (cols % (tile.stage * splitK) !== 0) {
    throw new Error(`${label}: ${cols} columns in ${splitK} ranges`);
  }
  return dispatch(rowsKernel(of, epilogue), {
    buffers: {
      weights: shard.operand,
      x: tile.mode === "staged" ? { ...x, size: 4 * rows * cols } : x,
      out,
      ...epilogue.buffers,
      w_scales: wScales,
      x_scales: xScales,
      scales: shard.scales ?? shard.operand,
    },
    constants: tensorConstants(of, epilogue),
    workgroups: [1, Math.ceil(shard.rows / (tile.columns * unit.m)), splitK],
    label,
    work: tensorWork(of, epilogue),
  });
}
