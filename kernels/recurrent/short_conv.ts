import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import { kernelOf } from "../shader.ts";

const THREADS = 64;

interface ShortConvParameters {
  /** Rows that are read for each. */
  readonly TAPS: number;
}

function convKernel(taps: number): Kernel {
  return kernelOf<ShortConvParameters>("recurrent/short_conv")({ TAPS: taps }, {
    name: `short_conv_${taps}`,
    bindings: ["rows", "x", "weight", "ring", "out"],
    constants: ["COLS", "RING"],
  });
}

const KEEP_ROWS = kernelOf("recurrent/keep_rows")({}, {
  name: "keep_rows",
  bindings: ["rows", "x", "ring"],
  constants: ["COLS", "RING"],
});

/** What a convolution reads and writes. */
export interface ShortConvBuffers {
  /** [count, 3 cols]: B, C, x */
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
 * Records `out = C * conv(B * x)`, then what the ring keeps of the rows.
 *
 * @param shape.ringRows not less than the verify rows of a slot and taps - 2.
 */
export function shortConv(
  { x, weight, rows, ring, out }: ShortConvBuffers,
  { cols, taps, ringRows, count, label }: {
    readonly cols: number;
    readonly taps: number;
    readonly ringRows: number;
    readonly count: number;
    readonly label: string;
  },
): Dispatch[] {
  const constants = { COLS: cols, RING: ringRows };
  const workgroups = [Math.ceil(cols / THREADS), count, 1] as const;
  return [
    dispatch(convKernel(taps), {
      buffers: { rows, x, weight, ring, out },
      constants,
      workgroups,
      label,
      work: { bytes: 4 * count * cols * 4, flops: 2 * count * cols * (taps + 1) },
    }),
    dispatch(KEEP_ROWS, {
      buffers: { rows, x, ring },
      constants,
      workgroups,
      label: `${label}.keep`,
      work: { bytes: 4 * count * cols * 3, flops: count * cols },
    }),
  ];
}
