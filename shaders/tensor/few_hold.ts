/** How x of one row comes to the workgroup memory of a matmul on matrix units. */
import type { Slots } from "../../src/gpu/link.ts";
import type { Hold } from "../matmul/hold/hold.ts";
import type { RowScales } from "../norm/rms_norm.ts";

/** A hold of matmul_tensor_few.wgsl. */
export type UnitsHold = Omit<Hold, "slots"> & {
  readonly slots: Hold["slots"] & { readonly lowers: string };
};

/** Slots where x is not held. */
export const STAGED: { readonly slots: Slots } = {
  slots: {
    hold: "matmul/hold/rows_held",
    held: "matmul/hold/rows_held",
    lowers: "tensor/lower_nothing",
  },
};

/** A hold whose first workgroup makes the scales of the layer's other inputs the largest, where there are any. */
export function holdOnUnits(hold: Hold, scales: RowScales | undefined): UnitsHold {
  const { name, slots, buffers, constants } = hold;
  if (!scales) return { ...hold, slots: { ...slots, lowers: "tensor/lower_nothing" } };
  return {
    ...hold,
    name: `${name}_lowers`,
    slots: { ...slots, lowers: "tensor/lower_scales" },
    buffers: { ...buffers, lowered: scales.lowered },
    constants: { ...constants, LOWERED_ROWS: scales.stride, ROW_JOBS: scales.jobs },
  };
}
