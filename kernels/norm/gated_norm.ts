import { type Dispatch, dispatch, type Operand } from "../../src/gpu/kernel.ts";
import { foldCounts, type FoldParameters } from "../lib/workgroup.ts";
import { kernelOf } from "../shader.ts";
import {
  normLanes,
  type NormShape,
  type RowScales,
  scaleBuffers,
  scaleConstants,
} from "./rms_norm.ts";

interface GatedNormParameters extends FoldParameters {
  readonly put: "store" | "pair" | "half";
  /** Whether the result is stored as f16. */
  readonly F16: boolean;
  /** Whether the scales of the rows are stored. */
  readonly STORES_SCALES: boolean;
  /** Vec8s of a head. */
  readonly HEAD_VEC8S: number;
  /** Vec8s of a row that a lane has, and all lanes together. */
  readonly EACH: number;
  readonly WIDTH: number;
}

/** Records `out = weight * x / rms(x) * silu(gate)`, the mean of squares being over each head of a row. */
export function gatedNorm(
  { x, gate, weight, out, scales }: {
    /** [rows, cols] */
    readonly x: Operand;
    readonly gate: Operand;
    /** [headDim] */
    readonly weight: Operand;
    /** [rows, cols], half of that with "half". */
    readonly out: Operand;
    /** Receives the scales of the rows of out; the scales of the other inputs are reset to the largest. */
    readonly scales?: RowScales | undefined;
  },
  { rows, cols, headDim, gate: { cols: gateCols, first }, eps, put = "store", lanes: most, label }:
    & Pick<NormShape, "rows" | "cols" | "eps" | "lanes" | "label">
    & {
      /** Columns of a head, a multiple of 8; divides cols. */
      readonly headDim: number;
      /** Row stride of gate, and the column where the gates begin; multiples of 4. */
      readonly gate: { readonly cols: number; readonly first: number };
      /** As of `NormShape`. */
      readonly put?: "store" | "pair" | "half";
    },
): Dispatch {
  const lanes = normLanes({ cols, lanes: most });
  const EACH = Math.ceil(cols / 8 / lanes);
  const parts = ["gated_norm", put, ...scales ? ["scale"] : []];
  const kernel = kernelOf<GatedNormParameters>("norm/gated_norm")({
    put,
    F16: put !== "store",
    STORES_SCALES: scales !== undefined,
    HEAD_VEC8S: headDim / 8,
    EACH,
    WIDTH: lanes * EACH,
    ...foldCounts(lanes),
  }, { name: `${parts.join("_")}_${headDim}_${lanes}x${EACH}` });
  return dispatch(kernel, {
    buffers: {
      x,
      gate,
      norm_weight: weight,
      out,
      ...scaleBuffers(scales),
    },
    constants: {
      COLS: cols,
      GATE_COLS: gateCols,
      FIRST: first,
      EPS: eps,
      LANES: lanes,
      ...scaleConstants(scales),
    },
    workgroups: [rows],
    label,
    work: { bytes: 12 * rows * cols, flops: 8 * rows * cols },
  });
}
