import {
  bytesOf,
  type Cost,
  type Dispatch,
  dispatch,
  type Kernel,
  type Operand,
} from "../../../src/gpu/kernel.ts";
import type { Precision, TensorMatrices, TensorShard } from "../../../src/gpu/matrices_on_units.ts";
import type { Matrix, Shard } from "../../../src/gpu/matrix.ts";
import { isQuantized } from "../../../src/gpu/weight_format.ts";
import type { MatrixUnit } from "../../../src/gpu/matrix_unit.ts";
import { type Epilogue, type EpilogueParameters, PLAIN } from "../../lib/epilogue.ts";
import { formatOf } from "./loads.ts";

/**
 * Storage buffers besides those of the epilogue and of quantized weights: weights, x, out, and the scales of weights
 * and x.
 */
const BUFFERS = 5;

/** Subgroups with fewer lanes than this are a CPU's (software adapter), for which long kernels take long to compile. */
export const MIN_LANES = 16;

/** Storage buffers that a kernel with an epilogue binds. */
export function tensorBindings(
  { buffers }: Epilogue,
  { format }: Pick<Matrix, "format">,
): number {
  return BUFFERS + Number(isQuantized(format)) + Object.keys(buffers).length;
}

/** What the matmuls on matrix units take of an epilogue, besides its own parameters. */
export interface EpilogueFlags {
  /** Whether it reduces the scales of its rows. */
  readonly OUT_SCALES: boolean;
  /** Whether its reads are issued before anything is written. */
  readonly PREPARED: boolean;
}

export function epilogueParameters(
  { parameters, outScales = false, prepares = false }: Epilogue,
): EpilogueFlags & EpilogueParameters {
  return { ...parameters, OUT_SCALES: outScales, PREPARED: prepares };
}

/** What one dispatch multiplies: a shard of a matrix by rows of x, in workgroups of a `Tile`. */
export interface TensorMatmul<Tile = unknown> {
  readonly unit: MatrixUnit;
  readonly tile: Tile;
  readonly rows: number;
  /** Default bf16. */
  readonly matrix: Pick<Matrix, "rows" | "cols"> & Partial<Pick<Matrix, "format" | "lanes">>;
  readonly shard: Shard;
  /** Divides the columns into ranges, each a multiple of the tile's stage. */
  readonly splitK?: number;
  /** Whether `halveWeights` has made f16 of the weights; default false. */
  readonly halved?: boolean;
  /** An epilogue that stores numbers; default "store". */
  readonly epilogue?: Epilogue;
  /** Precision of x; default f32, for quantized weights always f16. */
  readonly precision?: Precision | undefined;
  /** Whether x is f16 already, vectors of eight [rows, 1 + LOW, cols / 8]; default false. */
  readonly xIsF16?: boolean | undefined;
  readonly label: string;
}

/** The scales are what `rowScales` and `weightScales` write. */
export interface TensorBuffers {
  /** f32 [rows, cols], or f16 where `xIsF16`. */
  readonly x: Operand;
  readonly out: Operand;
  readonly wScales: Operand;
  readonly xScales: Operand;
}

function tensorConstants(
  { matrix, shard, splitK = 1 }: TensorMatmul,
  epilogue: Epilogue,
): Record<string, number> {
  const { format = "bf16", lanes = 1 } = matrix;
  return {
    COLS: matrix.cols,
    MATRIX_ROWS: shard.rows,
    OUT_COLS: Math.round(matrix.rows * epilogue.outShare),
    FIRST: shard.first,
    SPLIT_K: splitK,
    ...isQuantized(format) ? { LANES: lanes } : {},
    ...epilogue.constants,
  };
}

function bytesOfX(of: TensorMatmul): number {
  const { rows, matrix: { cols }, xIsF16 } = of;
  return (xIsF16 && formatOf(of).parameters.LOW === 0 ? 2 : 4) * rows * cols;
}

/** Cost of one dispatch: it reads the weights and x and writes the outputs. */
function tensorWork(of: TensorMatmul, { moved }: Epilogue): Cost {
  const { rows, matrix: { cols }, shard } = of;
  return {
    bytes: bytesOf(shard.operand) + (shard.scales ? bytesOf(shard.scales) : 0) + bytesOfX(of) +
      4 * rows * shard.rows * moved,
    flops: 2 * rows * shard.rows * cols,
  };
}

/** Records the launch of a kernel, with what a `prologue` binds besides. */
export function tensorDispatch(
  kernel: Kernel,
  { x, out, wScales, xScales }: TensorBuffers,
  { of, workgroups, prologue }: {
    readonly of: TensorMatmul;
    readonly workgroups: Dispatch["workgroups"];
    readonly prologue?: Pick<Epilogue, "buffers" | "constants"> | undefined;
  },
): Dispatch {
  const { shard, epilogue = PLAIN.store, label } = of;
  return dispatch(kernel, {
    buffers: {
      weights: shard.operand,
      x: { ...x, size: bytesOfX(of) },
      out,
      ...epilogue.buffers,
      ...prologue?.buffers,
      w_scales: wScales,
      ...prologue ? {} : { x_scales: xScales },
      ...shard.scales ? { scales: shard.scales } : {},
    },
    constants: { ...tensorConstants(of, epilogue), ...prologue?.constants },
    workgroups,
    label,
    work: tensorWork(of, epilogue),
  });
}

/** What matrix units need for a matrix's shards; undefined if the matrix is not multiplied on them. */
export function tensorShards(
  { shards }: Pick<Matrix, "shards">,
  tensor: TensorMatrices | undefined,
): TensorShard[] | undefined {
  const found = shards.flatMap((shard) => tensor?.shards.get(shard) ?? []);
  return found.length === shards.length ? found : undefined;
}
