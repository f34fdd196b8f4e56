/** Sums, gates and caps of whole rows, where no other kernel does them on the way. */
import { type Dispatch, dispatch, type Kernel, type Operand } from "../../src/gpu/kernel.ts";
import { type Activation, type GateName, GATES, type Gating } from "../lib/gate.ts";
import { kernelOf } from "../shader.ts";

const ADD = kernelOf("elementwise/add")({}, {
  name: "add_rows",
  bindings: ["x", "y"],
  constants: ["VECTORS", "PARTS"],
});

const QUERY_SCALE = kernelOf("elementwise/query_scale")({}, {
  name: "query_scale_rows",
  bindings: ["x", "rows", "out"],
  constants: ["COLS", "BETA", "LENGTH"],
});

/** The function of each number x: "cap" is most tanh(x / most), "scale" is by * x. */
export type ElementFunction =
  | { readonly of: "cap"; readonly most: number }
  | { readonly of: "scale"; readonly by: number };

interface GateParameters {
  /** The activation of the gate. */
  readonly gate: GateName;
}

interface MapParameters {
  /** The function of each number. */
  readonly f: ElementFunction["of"];
}

function gateKernel(gate: GateName): Kernel<"x" | "out", "COLS"> {
  return kernelOf<GateParameters>("elementwise/gate")({ gate }, {
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
  { rows, cols, activation, label }: Rows & { readonly activation: Activation },
): Dispatch {
  return dispatch(gateKernel(GATES[activation].gate), {
    buffers,
    constants: { COLS: cols },
    workgroups: [Math.ceil(cols / 64), rows],
    label,
    work: { bytes: 4 * rows * cols * 3, flops: 8 * rows * cols },
  });
}

interface OutputGateParameters {
  readonly gating: Gating;
}

/**
 * Records `out = x * f(gate)`.
 *
 * @param gate.first column of the first gate, [rows, gate.cols].
 * @param gate.width neighbouring numbers that share a gate.
 */
export function outputGateRows(
  buffers: { readonly x: Operand; readonly gate: Operand; readonly out: Operand },
  { rows, cols, gate, label }: Rows & {
    readonly gate: {
      readonly gating: Gating;
      readonly cols: number;
      readonly first: number;
      readonly width: number;
    };
  },
): Dispatch {
  const { gating, width } = gate;
  const kernel = kernelOf<OutputGateParameters>("elementwise/output_gate")({ gating }, {
    name: `output_gate_${gating}`,
    bindings: ["x", "gate", "out"],
    constants: ["COLS", "GATE_COLS", "FIRST", "WIDTH"],
  });
  return dispatch(kernel, {
    buffers,
    constants: { COLS: cols, GATE_COLS: gate.cols, FIRST: gate.first, WIDTH: width },
    workgroups: [Math.ceil(cols / 64), rows],
    label,
    work: { bytes: 12 * rows * cols, flops: 4 * rows * cols },
  });
}

/** What queries are multiplied by, by their position: 1 + beta ln(1 + floor(position / length)). */
export interface QueryScale {
  readonly beta: number;
  /** Tokens. */
  readonly length: number;
}

/** Records `out = x` times the scale of each row's position. @param buffers.rows `Row`s. */
export function queryScaleRows(
  buffers: { readonly x: Operand; readonly rows: Operand; readonly out: Operand },
  { rows, cols, beta, length, label }: Rows & QueryScale,
): Dispatch {
  return dispatch(QUERY_SCALE, {
    buffers,
    constants: { COLS: cols, BETA: beta, LENGTH: length },
    workgroups: [Math.ceil(cols / 64), rows],
    label,
    work: { bytes: 8 * rows * cols, flops: rows * cols },
  });
}

/** Records `out = f(x)`, number by number. */
export function mapRows(
  buffers: { readonly x: Operand; readonly out: Operand },
  { rows, cols, f, label }: Rows & { readonly f: ElementFunction },
): Dispatch {
  const constant = f.of === "cap" ? { CAP: f.most } : { BY: f.by };
  const kernel = kernelOf<MapParameters>("elementwise/map")({ f: f.of }, { name: `${f.of}_rows` });
  return dispatch(kernel, {
    buffers,
    constants: { COLS: cols, ...constant },
    workgroups: [Math.ceil(cols / 64), rows],
    label,
    work: { bytes: 8 * rows * cols, flops: rows * cols },
  });
}

const SCALE_BY = kernelOf("elementwise/scale_by")({}, {
  name: "scale_rows_by",
  bindings: ["x", "scalar", "out"],
  constants: ["COLS"],
});

/** Records `out = x scalar[0]`, number by number: a factor that is on the device. */
export function scaleBy(
  buffers: Readonly<Record<"x" | "scalar" | "out", Operand>>,
  { rows, cols, label }: Rows,
): Dispatch {
  return dispatch(SCALE_BY, {
    buffers,
    constants: { COLS: cols },
    workgroups: [Math.ceil(cols / 64), rows],
    label,
    work: { bytes: 8 * rows * cols, flops: rows * cols },
  });
}

const GATE_BY = kernelOf<GateParameters>("elementwise/gate_by")({ gate: "gate_gelu" }, {
  name: "gate_gelu_by",
  bindings: ["x", "y", "out"],
  constants: ["COLS"],
});

/** Records `out = gelu(x) y`, number by number. */
export function gateBy(
  buffers: Readonly<Record<"x" | "y" | "out", Operand>>,
  { rows, cols, label }: Rows,
): Dispatch {
  return dispatch(GATE_BY, {
    buffers,
    constants: { COLS: cols },
    workgroups: [Math.ceil(cols / 64), rows],
    label,
    work: { bytes: 12 * rows * cols, flops: 8 * rows * cols },
  });
}
