/** Sums, gates and caps of whole rows, where no other kernel does them on the way. */
import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import { kernelOf } from "../shader.ts";

const ADD = kernelOf("elementwise/add", {}, {
  name: "add_rows",
  bindings: ["x", "y"],
  constants: ["VECTORS", "PARTS"],
});

type RowsKernel = Kernel<"x" | "out", "COLS">;

const GATES: Readonly<Record<"silu" | "gelu_tanh", RowsKernel>> = {
  silu: gateKernel("gate_silu"),
  gelu_tanh: gateKernel("gate_gelu"),
};

const CAP = kernelOf("elementwise/soft_cap", {}, {
  name: "cap_rows",
  bindings: ["x", "out"],
  constants: ["COLS", "CAP"],
});

const SCALE = kernelOf("elementwise/scale", {}, {
  name: "scale_rows",
  bindings: ["x", "out"],
  constants: ["COLS", "BY"],
});

function gateKernel(gate: string): RowsKernel {
  return kernelOf("elementwise/gate", { gate }, {
    name: `${gate}_rows`,
    bindings: ["x", "out"],
    constants: ["COLS"],
  });
}

interface Rows {
  readonly rows: number;
  /** Of out. */
  readonly cols: number;
  readonly label: string;
}

/** Records `x += the parts of y`, [parts, rows, cols]; cols is a multiple of 4. */
export function addRows(
  { x, y }: { readonly x: Operand; readonly y: Operand },
  { rows, cols, parts, label }: Rows & { readonly parts: number },
): Dispatch {
  return dispatch(ADD, {
    // The kernel computes the stride of the parts from its size.
    buffers: { x, y: { ...y, size: 4 * parts * rows * cols } },
    constants: { VECTORS: cols / 4, PARTS: parts },
    workgroups: [Math.ceil(cols / 4 / 64), rows],
    label,
    work: { bytes: 4 * rows * cols * (parts + 2), flops: rows * cols * parts },
  });
}

/** Records `out = activation(gate) * up` of x, [rows, 2 cols], gates first. */
export function gateRows(
  buffers: { readonly x: Operand; readonly out: Operand },
  { rows, cols, activation, label }: Rows & { readonly activation: keyof typeof GATES },
): Dispatch {
  return dispatch(GATES[activation], {
    buffers,
    constants: { COLS: cols },
    workgroups: [Math.ceil(cols / 64), rows],
    label,
    work: { bytes: 4 * rows * cols * 3, flops: 8 * rows * cols },
  });
}

/** Records `out = by x`. */
export function scaleRows(
  buffers: { readonly x: Operand; readonly out: Operand },
  { rows, cols, by, label }: Rows & { readonly by: number },
): Dispatch {
  return dispatch(SCALE, {
    buffers,
    constants: { COLS: cols, BY: by },
    workgroups: [Math.ceil(cols / 64), rows],
    label,
    work: { bytes: 8 * rows * cols, flops: rows * cols },
  });
}

/** Records `out = most tanh(x / most)`. */
export function capRows(
  buffers: { readonly x: Operand; readonly out: Operand },
  { rows, cols, most, label }: Rows & { readonly most: number },
): Dispatch {
  return dispatch(CAP, {
    buffers,
    constants: { COLS: cols, CAP: most },
    workgroups: [Math.ceil(cols / 64), rows],
    label,
    work: { bytes: 8 * rows * cols, flops: 8 * rows * cols },
  });
}
