/** What attention keeps between its dispatches. */
import type { Operand } from "../../src/gpu/kernel.ts";

/** Sums of the splits of keys, before they are added. */
export interface PartialSums {
  /** [rows, heads, splits, headDim] f32 */
  readonly sums: Operand;
  /** Peak and total, [rows, heads, splits, 2] f32 */
  readonly stats: Operand;
  /** f16 numbers of a slot's keys and values, where attention over many rows goes to matrix units. */
  readonly halves?: Operand | undefined;
}

/** f32 words of `PartialSums`. */
export interface PartialWords {
  readonly sums: number;
  readonly stats: number;
  /** Absent: none. */
  readonly halves?: number;
}
