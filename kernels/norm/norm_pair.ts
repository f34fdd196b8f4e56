/** The two norms that an EAGLE-3 draft begins with, in one dispatch. */
import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import type { Table } from "../../src/gpu/matrix.ts";
import type { FloatFormat } from "../../src/gpu/weight_format.ts";
import { foldCounts, type FoldParameters } from "../lib/workgroup.ts";
import { kernelOf } from "../shader.ts";
import {
  normLanes,
  type NormShape,
  type RowScales,
  scaleBuffers,
  scaleConstants,
} from "./rms_norm.ts";

/** As for `rmsNorm`. */
type Put = "store" | "pair" | "half";

interface NormPairParameters extends FoldParameters {
  /** Format of the embedding. */
  readonly weights: FloatFormat;
  /** Whether an index names the rows of x. */
  readonly INDEXED: boolean;
  /** Whether the second norm's result is kept, and not what it norms. */
  readonly KEEPS_NORMED: boolean;
  /** Whether the scales of the rows are stored. */
  readonly STORES_SCALES: boolean;
  readonly put: Put;
  /** Vec8s of either half of a row that a lane has. */
  readonly EACH: number;
  /** Workgroups of a row: 2, or 1 for both halves. */
  readonly HALVES: number;
}

interface Variant {
  readonly format: FloatFormat;
  readonly indexed: boolean;
  readonly normed: boolean;
  readonly scales: boolean;
  readonly put: Put;
  readonly cols: number;
  readonly lanes: number;
}

/** Storage buffers, indexed and with scales that are stored. */
const MAX_BUFFERS = 10;

/** Workgroups of a row: with scales one makes both halves, because the scale is that of the whole row. */
function halvesOf(scales: boolean): number {
  return scales ? 1 : 2;
}

function pairKernel(
  { format, indexed, normed, scales, put, cols, lanes }: Variant,
): Kernel {
  const each = Math.ceil(cols / 8 / lanes);
  const puts = [...scales ? ["scale"] : [], ...put === "store" ? [] : [put]];
  const kinds = [format, indexed ? "index" : "rows", normed ? "output" : "input", ...puts];
  const name = `norm_pair_${kinds.join("_")}_${lanes}x${each}`;
  return kernelOf<NormPairParameters>("norm/norm_pair")({
    weights: format,
    INDEXED: indexed,
    KEEPS_NORMED: normed,
    STORES_SCALES: scales,
    put,
    EACH: each,
    HALVES: halvesOf(scales),
    ...foldCounts(lanes),
  }, { name });
}

/** Whether an adapter has enough bindings for `normPair` to store scales. */
export function pairStoresScales(
  limits: { readonly maxStorageBuffersPerShaderStage: number },
): boolean {
  return MAX_BUFFERS <= limits.maxStorageBuffersPerShaderStage;
}

/** Whether `normPair` takes tokens of this embedding: it is in one binding. */
export function pairsNorms({ shards }: Table): boolean {
  return shards.length === 1;
}

/**
 * Records out[r] = [norm(E[token of r]) weight, norm(h of r) weight], [rows, 2 cols], with the bits of two
 * `rmsNorm`; see `pairsNorms`.
 */
export function normPair(
  { token, hidden, out, kept, scales, put = "store" }: {
    readonly token: { readonly matrix: Table; readonly rows: Operand; readonly weight: Operand };
    /**
     * x is [.., cols]; `index` names its row for each r, 0xffffffff for none; absent: row r. With `splitK` above 1 it
     * is [splitK, rows, cols], the sums of a matmul over ranges of k, which are added.
     */
    readonly hidden: {
      readonly x: Operand;
      readonly splitK?: number | undefined;
      readonly index?: Operand | undefined;
      readonly weight: Operand;
    };
    readonly out: Operand;
    /** [rows, cols]: h as it is, or normed. */
    readonly kept: { readonly what: "input" | "output"; readonly out: Operand };
    /** As for `rmsNorm`; see `pairStoresScales`. */
    readonly scales?: RowScales | undefined;
    /** As for `rmsNorm`; "pair" and "half" with scales. */
    readonly put?: Put | undefined;
  },
  shape: Pick<NormShape, "rows" | "cols" | "eps" | "lanes" | "label">,
): Dispatch {
  const { rows, cols, eps, label } = shape;
  const { matrix: { format, shards: [shard] }, rows: list, weight: token_weight } = token;
  if (!shard) throw new Error(`${label}: an embedding without rows`);
  const { x, splitK = 1, index, weight: hidden_weight } = hidden;
  const lanes = normLanes(shape);
  const normed = kept.what === "output";
  const kind = {
    format,
    indexed: index !== undefined,
    normed,
    scales: scales !== undefined,
    put,
  };
  const rowsOfX = splitK > 1 ? { ...x, size: 4 * splitK * rows * cols } : x;
  return dispatch(pairKernel({ ...kind, cols, lanes }), {
    buffers: {
      weights: shard.operand,
      token_weight,
      out,
      rows: list,
      x: rowsOfX,
      hidden_weight,
      kept: kept.out,
      ...index ? { index } : {},
      ...scaleBuffers(scales),
    },
    constants: {
      COLS: cols,
      EPS: eps,
      LANES: lanes,
      TOKENS: shard.rows,
      SPLIT_K: splitK,
      ...scaleConstants(scales),
    },
    workgroups: [rows, halvesOf(kind.scales)],
    label,
    work: { bytes: (4 * (4 + splitK) + 2) * rows * cols + 8 * cols, flops: 8 * rows * cols },
  });
}
