import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import { kernelOf } from "../shader.ts";

const THREADS = 64;

/** Rows of an invocation in prompts, and of an invocation of keep_rows.wgsl, most of whose rows are not kept. */
const [CONV_BLOCK, KEEP_BLOCK] = [8, 16];

/** The output of a convolution: C * conv(B * v) of rows B, C, v (LFM2), or silu(conv(u)) (Gated DeltaNet). */
export type ConvForm = "gated" | "silu";

interface KeepParameters {
  /** Whether x is B, C and v. */
  readonly GATED: boolean;
  /** Whether rows are nodes of trees. */
  readonly TREE: boolean;
  /** Rows of an invocation. */
  readonly BLOCK: number;
}

interface ShortConvParameters extends KeepParameters {
  /** Rows that are read for each row, itself included, and those before it. */
  readonly TAPS: number;
  readonly BEFORE: number;
  /** Whether the ring's rows are stored at once. */
  readonly KEEPS: boolean;
}

interface Rows {
  /** Whether the ring's rows are stored at once. */
  readonly keeps: boolean;
  readonly TREE: boolean;
}

function convKernel(form: ConvForm, taps: number, { keeps, TREE }: Rows): Kernel {
  const parameters = { GATED: form === "gated", TREE, TAPS: taps, BEFORE: taps - 1, KEEPS: keeps };
  const BLOCK = keeps ? 1 : CONV_BLOCK;
  return kernelOf<ShortConvParameters>("recurrent/short_conv")({ ...parameters, BLOCK }, {
    name: `short_conv_${form}_${taps}${keeps ? "_keep" : ""}${TREE ? "_tree" : ""}`,
    bindings: ["rows", "x", "weight", "ring", "out"],
    constants: ["COLS", "X_COLS", "RING"],
  });
}

function keepKernel(form: ConvForm, TREE: boolean): Kernel {
  return kernelOf<KeepParameters>("recurrent/keep_rows")({
    GATED: form === "gated",
    TREE,
    BLOCK: KEEP_BLOCK,
  }, {
    name: `keep_rows_${form}${TREE ? "_tree" : ""}`,
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

/** Whether no row of a forward overwrites a row of the ring that another row reads. */
export function keepsAtOnce(
  { count, taps, ringRows }: {
    readonly count: number;
    readonly taps: number;
    readonly ringRows: number;
  },
): boolean {
  return count + taps - 1 <= ringRows;
}

/**
 * Records a convolution of each column, then the storing of rows in the ring.
 *
 * @param shape.ringRows at least the verify rows of a slot plus taps - 2.
 */
export function shortConv(
  { x, weight, rows, ring, out }: ShortConvBuffers,
  { form, cols, xCols, taps, ringRows, count, paths: TREE = false, label }: {
    readonly form: ConvForm;
    readonly cols: number;
    readonly xCols: number;
    readonly taps: number;
    readonly ringRows: number;
    readonly count: number;
    /** Whether rows are nodes of trees; default false. */
    readonly paths?: boolean | undefined;
    readonly label: string;
  },
): Dispatch[] {
  const constants = { COLS: cols, X_COLS: xCols, RING: ringRows };
  const workgroups = (block: number) =>
    [Math.ceil(cols / THREADS), Math.ceil(count / block), 1] as const;
  const keeps = keepsAtOnce({ count, taps, ringRows });
  // The kernels compute the number of rows from the size.
  const of = { rows, x: { ...x, size: 4 * count * xCols }, ring };
  const conv = dispatch(convKernel(form, taps, { keeps, TREE }), {
    buffers: { ...of, weight, out },
    constants,
    workgroups: workgroups(keeps ? 1 : CONV_BLOCK),
    label,
    work: { bytes: 4 * count * cols * (keeps ? 4 : 2), flops: 2 * count * cols * (taps + 1) },
  });
  if (keeps) return [conv];
  return [
    conv,
    dispatch(keepKernel(form, TREE), {
      buffers: of,
      constants,
      workgroups: workgroups(KEEP_BLOCK),
      label: `${label}.keep`,
      work: { bytes: 8 * Math.min(count, ringRows) * cols, flops: 0 },
    }),
  ];
}
