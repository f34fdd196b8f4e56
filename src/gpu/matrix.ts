import type { Operand } from "./kernel.ts";
import type { FloatFormat, WeightFormat } from "./weight_format.ts";

/**
 * The order in which the rows of the checkpoint's tensors are stored in a shard. The loader stores them so
 * (src/model/weights/shards.ts); the reader of a matrix's outputs names the order that it expects (`requireRowOrder`).
 *
 *     stacked      the tensors' rows, one tensor after the other
 *     gate_up      [gate; up]: the gate row and the up row of one output are half a shard apart
 *     rope_halves  the first halves of all heads of q, k and v, then their second halves, both in the order of heads:
 *                  the two rows of a rope pair are half a shard apart
 */
export type RowOrder = "stacked" | "gate_up" | "rope_halves";

/** Consecutive rows of a matrix in one binding. */
export interface Shard {
  readonly operand: Operand;
  /**
   * Scales of a quantized format, [rows, cols / GROUP] in the order of quantize.wgsl. They are f16, or
   * the words or bytes of a prequantized format.
   */
  readonly scales?: Operand;
  /** First output column this shard makes (first row of the matrix where rows are not paired). */
  readonly first: number;
  /** Rows of the shard, even. */
  readonly rows: number;
}

/**
 * A weight matrix [rows, cols], cut by rows into shards where a binding limit needs it. What its bytes mean:
 *
 *     rowOrder       which rows of the checkpoint's tensors a shard has
 *     format         the type of the weights. Rows of float formats are stored in order of k. Rows of quantized
 *                    formats are stored in lane order: the block that a lane loads is followed by those of the other
 *                    lanes, so that neighbouring lanes read neighbouring blocks (kernels/matmul/quantize.wgsl,
 *                    src/model/checkpoint/quantized)
 *     lanes          the number of lanes that lane order is made for
 *     Shard.scales   scales and zeros of a quantized format, by groups of GROUP numbers along k, in lane order too
 *
 * Matrix units take bf16 matrices as f16, see `TensorShard`.
 */
export interface Matrix {
  readonly format: WeightFormat;
  readonly rowOrder: RowOrder;
  readonly rows: number;
  readonly cols: number;
  /**
   * Lanes that share one output of a matmul. Quantized rows are packed for this many; more may then share an
   * output (`lanesOf`). It decides the order of the sum, so it is the same for every number of rows of x.
   */
  readonly lanes: number;
  readonly shards: readonly Shard[];
}

/**
 * Checks that the rows of a matrix are in the order that the reader of its outputs takes.
 *
 * @throws Error where they are in another one: the outputs would be paired wrongly.
 */
export function requireRowOrder(
  { rowOrder }: Pick<Matrix, "rowOrder">,
  wanted: RowOrder,
  label: string,
): void {
  if (rowOrder === wanted) return;
  throw new Error(`Cannot plan "${label}": its matrix has row order ${rowOrder}, not ${wanted}`);
}

/** A matrix that rows can be looked up in. */
export interface Table extends Matrix {
  readonly format: FloatFormat;
}
