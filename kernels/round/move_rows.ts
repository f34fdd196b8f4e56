import { type Dispatch, dispatch, type Operand } from "../../src/gpu/kernel.ts";
import { kernelOf } from "../shader.ts";

interface MoveRowsParameters {
  /** Which rows of x go to which rows of out. */
  readonly move: "copy" | "gather" | "scatter";
}

const MOVE = kernelOf<MoveRowsParameters>("round/move_rows");

const COPY = MOVE({ move: "copy" }, {
  name: "copy_rows",
  bindings: ["x", "out"],
  constants: ["COLS", "OUT_COLS", "OUT_FIRST"],
});
const GATHER = MOVE({ move: "gather" }, {
  name: "gather_rows",
  bindings: ["x", "index", "out"],
  constants: ["COLS", "OUT_COLS", "OUT_FIRST"],
});
const SCATTER = MOVE({ move: "scatter" }, {
  name: "scatter_rows",
  bindings: ["x", "index", "out"],
  constants: ["COLS"],
});

interface Move {
  readonly rows: number;
  readonly cols: number;
  readonly label: string;
}

interface Window extends Move {
  /** Row stride of out; default cols. */
  readonly outCols?: number;
  readonly outFirst?: number;
}

function window({ cols, outCols = cols, outFirst = 0 }: Window) {
  return { COLS: cols, OUT_COLS: outCols, OUT_FIRST: outFirst };
}

function launch({ rows, cols, label }: Move) {
  return {
    workgroups: [Math.ceil(cols / 64), rows] as const,
    label,
    work: { bytes: 2 * 4 * rows * cols, flops: 0 },
  };
}

/** Records `out[r, outFirst..] = x[r]`. */
export function copyRows(
  buffers: { readonly x: Operand; readonly out: Operand },
  shape: Window,
): Dispatch {
  return dispatch(COPY, { buffers, constants: window(shape), ...launch(shape) });
}

/** Records `out[r, outFirst..] = x[index[r]]`. */
export function gatherRows(
  buffers: { readonly x: Operand; readonly index: Operand; readonly out: Operand },
  shape: Window,
): Dispatch {
  return dispatch(GATHER, { buffers, constants: window(shape), ...launch(shape) });
}

/** Records `out[index[r]] = x[r]`. */
export function scatterRows(
  buffers: { readonly x: Operand; readonly index: Operand; readonly out: Operand },
  shape: Move,
): Dispatch {
  return dispatch(SCATTER, { buffers, constants: { COLS: shape.cols }, ...launch(shape) });
}
