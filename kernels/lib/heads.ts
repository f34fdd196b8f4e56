import type { Operand } from "../../src/gpu/kernel.ts";
import type { KvDtype } from "../../src/gpu/kv.ts";
import type { Gating } from "./gate.ts";

/** Head counts and sizes of one attention layer, and how its keys and values are kept. */
export interface Heads {
  readonly heads: number;
  readonly kvHeads: number;
  /** A multiple of 8. */
  readonly headDim: number;
  /** Of the latents that are keys and whose first elements are the values; absent where there are none. */
  readonly rank?: number;
  /** Pages per slot in the block table. */
  readonly tablePages: number;
  readonly kvDtype: KvDtype;
}

/** The buffers that storing the keys and values of rows takes. */
export interface KvPlace {
  /** cos and sin, [positions, headDim / 2, 2]. */
  readonly rope: Operand;
  readonly rows: Operand;
  readonly pages: Operand;
  readonly keys: Operand;
  readonly values: Operand;
}

/** Sums of attention over splits of keys, before they are added. */
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

/** Gates of the heads' outputs. */
export interface HeadsGate {
  /** [rows, cols], those of the heads from column `first` on: multiples of 8 and of 4. */
  readonly values: Operand;
  readonly cols: number;
  readonly first: number;
}

/** What multiplies attention's output: a function of gates. */
export interface OutputGates extends HeadsGate {
  readonly gating: Gating;
  /** Neighbouring numbers that share a gate: 1, or as many as a head has. */
  readonly width: number;
}
