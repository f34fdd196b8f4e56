/** How x of one row comes whole to the workgroup memory of a matmul on matrix units. */
import type { KernelParameters } from "../../../src/gpu/directives.ts";
import type { Operand } from "../../../src/gpu/kernel.ts";
import type { RowScales } from "../../norm/rms_norm.ts";

/** What brings x, as of the other matmuls (matmul/hold/hold.ts). */
export interface HeldRow {
  /** Part of the kernel's name. */
  readonly name: string;
  /** Which one of matmul/hold/x.wgsl. */
  readonly kind: "rows" | "normed" | "combined" | "relay";
  readonly buffers: Readonly<Record<string, Operand>>;
  readonly constants: Readonly<Record<string, number>>;
  /** Whose scales the first workgroup makes the largest. */
  readonly lowers?: RowScales | undefined;
  /** What else its text depends on, in workgroups of so many invocations. */
  parameters(of: { readonly threads: number }): KernelParameters;
}

/** A row with what the scales need that its first workgroup makes the largest. */
export function holdOnUnits(row: HeldRow): HeldRow {
  const { lowers } = row;
  if (!lowers) return row;
  return {
    ...row,
    name: `${row.name}_lowers`,
    buffers: { ...row.buffers, lowered: lowers.lowered },
    constants: { ...row.constants, LOWERED_ROWS: lowers.stride, ROW_JOBS: lowers.jobs },
  };
}
