/**
 * q, k and v of one row and its attention in a dispatch: attention's workgroups have keys and values on their way while
 * they wait.
 */
import type { Dispatch, Operand } from "../../src/gpu/kernel.ts";
import type { Matrix, Tuning } from "../../src/gpu/matrix.ts";
import { joined } from "../joined.ts";
import type { Hold } from "../matmul/hold/hold.ts";
import { MOST_TURNS, RELAYED_STORE } from "../matmul/relay/relay.ts";
import { matmul } from "../matmul/matmul.ts";
import { lanesOf } from "../matmul/matmul_lanes.ts";
import { MANY_WEIGHTS } from "../matmul/matmul_rows.ts";
import { residentShape } from "../matmul/matmul_shape.ts";
import { canBeResident } from "../matmul/matmul_stages.ts";
import { tensorShards } from "../matmul/tensor/common.ts";
import { type RelayedHeads, rowThreads } from "./attention_row.ts";

/** Storage buffers of both besides those of what brings x to the first. */
const BUFFERS = 3 + 8;

/** Words of q, k and v that wait for their attention, all 0 when they are made, and after each dispatch. */
export function headWords(width: number): number {
  return width + 1;
}

/** Whether q, k and v of one row, of heads of this size, go together with their attention. */
export function relaysHeads(
  matrix: Matrix,
  { hold, headDim, tuning }: {
    readonly hold: Hold;
    readonly headDim: number;
    readonly tuning: Tuning;
  },
): boolean {
  const { relays, storageBuffers, tensor } = tuning;
  const bound = BUFFERS + Object.keys(hold.buffers).length;
  const use = { rows: 1, splitK: 1, tuning };
  const small = matrix.rows * matrix.cols < MANY_WEIGHTS && matrix.shards.length === 1;
  if (!relays || storageBuffers <= bound || !small || tensorShards(matrix, tensor)) return false;
  return canBeResident(matrix, use) &&
    residentShape(matrix, use, true).groups * lanesOf(matrix, tuning) === rowThreads(headDim);
}

/** Records both; see `relaysHeads`. */
export function relayedHeads(
  { matrix, x, words }: {
    readonly matrix: Matrix;
    readonly x: Operand;
    /** u32 [headWords], zeros. */
    readonly words: Operand;
  },
  { hold, tuning, turns = MOST_TURNS, label }: {
    readonly hold: Hold;
    readonly tuning: Tuning;
    readonly turns?: number;
    readonly label: string;
  },
  attention: (from: RelayedHeads) => Dispatch,
): Dispatch {
  const [first] = matmul({ matrix, x, out: words }, {
    rows: 1,
    epilogue: RELAYED_STORE,
    tuning,
    label,
    hold: { ...hold, wide: true },
  }) as [Dispatch];
  const second = attention({ words, makers: first.workgroups[1], turns });
  return joined([first, second], label);
}
