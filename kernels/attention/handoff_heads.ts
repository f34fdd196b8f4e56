/**
 * One dispatch computes q, k and v of one row and its attention: attention's workgroups load keys and values while they
 * wait for q, k and v.
 */
import type { Dispatch, Operand } from "../../src/gpu/kernel.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import type { Tuning } from "../../src/gpu/tuning.ts";
import { joined } from "../joined.ts";
import type { Prologue } from "../matmul/prologue/prologue.ts";
import { HANDOFF_STORE, MAX_TURNS } from "../matmul/handoff/handoff.ts";
import { matmul } from "../matmul/matmul.ts";
import { lanesOf } from "../matmul/matmul_lanes.ts";
import { MANY_WEIGHTS } from "../matmul/matmul_rows.ts";
import { residentShape } from "../matmul/matmul_shape.ts";
import { canBeResident, widened } from "../matmul/matmul_stages.ts";
import { tensorShards } from "../matmul/tensor/common.ts";
import { type HandoffHeads, rowThreads } from "./attention_row.ts";

/** Words that hold q, k and v until attention reads them: all 0 when they are allocated and after each dispatch. */
export function headWords(width: number): number {
  return width + 1;
}

/**
 * Whether one dispatch computes q, k and v of one row and its attention, for heads of this size, where the adapter has
 * room for both (`canBeJoined`).
 */
export function handsOffHeads(
  matrix: Matrix,
  { headDim, tuning }: { readonly headDim: number; readonly tuning: Tuning },
): boolean {
  const use = { rows: 1, splitK: 1, tuning };
  const small = matrix.rows * matrix.cols < MANY_WEIGHTS && matrix.shards.length === 1;
  if (!tuning.handoffs || !small || tensorShards(matrix, tuning.tensor)) return false;
  return canBeResident(matrix, widened(matrix, use, 2)) &&
    residentShape(matrix, use, 2).groups * lanesOf(matrix, tuning) === rowThreads(headDim);
}

/** Records that dispatch; see `handsOffHeads`. */
export function headsWithHandoff(
  { matrix, x, words }: {
    readonly matrix: Matrix;
    readonly x: Operand;
    /** u32 [headWords], zeros. */
    readonly words: Operand;
  },
  { prologue, tuning, turns = MAX_TURNS, label }: {
    readonly prologue: Prologue;
    readonly tuning: Tuning;
    readonly turns?: number;
    readonly label: string;
  },
  attention: (from: HandoffHeads) => Dispatch,
): Dispatch {
  const [first] = matmul({ matrix, x, out: words }, {
    rows: 1,
    epilogue: HANDOFF_STORE,
    tuning,
    label,
    prologue: { ...prologue, widen: 2 },
  }) as [Dispatch];
  const second = attention({ words, makers: first.workgroups[1], turns });
  return joined([first, second], label);
}
