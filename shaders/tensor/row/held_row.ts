/** How x of one row comes whole to the workgroup memory of a matmul on matrix units. */
import type { Operand } from "../../../src/gpu/kernel.ts";
import type { Slots } from "../../../src/gpu/link.ts";
import type { RowScales } from "../../norm/rms_norm.ts";

/** What brings x, as of the other matmuls (matmul/hold/hold.ts). */
export interface HeldRow {
  /** Part of the kernel's name. */
  readonly name: string;
  /** `hold` and `held`. */
  readonly slots: Slots;
  readonly buffers: Readonly<Record<string, Operand>>;
  readonly constants: Readonly<Record<string, number>>;
  /** Whose scales the first workgroup makes the largest. */
  readonly lowers?: RowScales | undefined;
  /** Numbers that its texts name with a dollar, for workgroups of so many invocations. */
  counts(of: { readonly threads: number }): Record<string, number>;
}

/** Slots where x is not held. */
export const STAGED: Slots = {
  hold: "tensor/row/lower_nothing",
  held: "tensor/row/lower_nothing",
  lowers: "tensor/row/lower_nothing",
};

/** A row with the texts for its `lowers`. */
export function holdOnUnits({ lowers, ...row }: HeldRow): HeldRow {
  if (!lowers) return { ...row, slots: { ...row.slots, lowers: "tensor/row/lower_nothing" } };
  return {
    ...row,
    name: `${row.name}_lowers`,
    slots: { ...row.slots, lowers: "tensor/row/lower_scales" },
    buffers: { ...row.buffers, lowered: lowers.lowered },
    constants: { ...row.constants, LOWERED_ROWS: lowers.stride, ROW_JOBS: lowers.jobs },
  };
}
