import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import { kernelOf } from "../shader.ts";

const THREADS = 64;

/** What is made of a convolution: C * conv(B * v) of rows B, C, v (LFM2), or silu(conv(u)) (Gated DeltaNet). */
export type ConvForm = "gated" | "silu";

interface KeepParameters {
  /** Whether x is B, C and v. */
  readonly GATED: boolean;
}

interface ShortConvParameters extends KeepParameters {
  /** Rows that are read for each. */
  readonly TAPS: number;
  /** Whether the ring's rows are stored at once. */
  readonly KEEPS: boolean;
}

function convKernel(form: ConvForm, taps: number, keeps: boolean): Kernel {
  const parameters = { GATED: form === "gated", TAPS: taps, KEEPS: keeps };
  return kernelOf<ShortConvParameters>("recurrent/short_conv")(parameters, {
    name: `short_conv_${form}_${taps}${keeps ? "_keep" : ""}`,
    bindings: ["rows", "x", "weight", "ring", "out"],
    constants: ["COLS", "X_COLS", "RING"],
  });
}

function keepKernel(form: ConvForm): Kernel {
  return kernelOf<KeepParameters>("recurrent/keep_rows")({ GATED: form === "gated" }, {
    name: `keep_rows_${form}`,
    bindings: ["rows", "x", "ring"],
    constants: ["COLS", "X_COLS", "RING"],
  });
}

/** What a convolution reads and writes. */
export interface ShortConvBuffers {
  /** [count, xCols], see `ConvForm`. */
  readonly x: Operand;
  /** [cols, taps], the oldest row's first. */
  readonly weight: Operand;
  /** `Row`s, [count] */
  readonly rows: Operand;
  /** [slots, ringRows, cols] */
  readonly ring: Operand;
  /** [count, cols] */
  readonly out: Operand;
}

/**
 * Records a convolution of each column, then what the ring keeps of the rows.
 *
 * @param shape.ringRows verify rows of a slot and taps - 2, or more.
 */
export function shortConv(
  { x, weight, rows, ring, out }: ShortConvBuffers,
  { form, cols, xCols, taps, ringRows, count, label }: {
    readonly form: ConvForm;
    readonly cols: number;
    readonly xCols: number;
    readonly taps: number;
    readonly ringRows: number;
    readonly count: number;
    readonly label: string;
  },
): Dispatch[] {
  const constants = { COLS: cols, X_COLS: xCols, RING: ringRows };
  const workgroups = [Math.ceil(cols / THREADS), count, 1] as const;
  // No row of the forward takes the place of one that another reads.
  const keeps = count + taps - 1 <= ringRows;
  const conv = convKernel(form, taps, keeps);
  const work = { bytes: 4 * count * cols * 4, flops: 2 * count * cols * (taps + 1) };
  const buffers = { rows, x, weight, ring, out };
  if (keeps) return [dispatch(conv, { buffers, constants, workgroups, label, work })];
  return [
    dispatch(conv, {
      buffers,
      constants,
      workgroups,
      label,
      work,
    }),
    dispatch(keepKernel(form), {
      buffers: { rows, x, ring },
      constants,
      workgroups,
      label: `${label}.keep`,
      work: { bytes: 4 * count * cols * 3, flops: count * cols },
    }),
  ];
}
