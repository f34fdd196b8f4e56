/** The sum of two normed branches, the second the weighted outputs of experts, in one dispatch. */
import { type Dispatch, dispatch, type Operand } from "../../src/gpu/kernel.ts";
import { foldCounts, type FoldParameters } from "../lib/workgroup.ts";
import { kernelOf } from "../shader.ts";
import { type NormedExperts, normLanes, type NormShape } from "./rms_norm.ts";

interface NormSumParameters extends FoldParameters {
  /** Vec8s of either branch that a lane has. */
  readonly EACH: number;
  /** Outputs of a row. */
  readonly EXPERTS: number;
}

/**
 * Records `out = norm(the sums of x) x.weight + norm(the experts' weighted outputs) experts.weight`, [rows, cols], with
 * the bits of `combineExperts` and two `rmsNorm`, the second of which adds.
 */
export function normSum(
  { x, experts, out }: {
    /** [splitK, rows, cols] and [cols] */
    readonly x: { readonly sums: Operand; readonly splitK: number; readonly weight: Operand };
    readonly experts: NormedExperts;
    readonly out: Operand;
  },
  shape: Pick<NormShape, "rows" | "cols" | "eps" | "lanes" | "label">,
): Dispatch {
  const { rows, cols, eps, label } = shape;
  const { count } = experts;
  const lanes = normLanes(shape);
  const EACH = Math.ceil(cols / 8 / lanes);
  const kernel = kernelOf<NormSumParameters>("norm/norm_sum")(
    { EACH, EXPERTS: count, ...foldCounts(lanes) },
    { name: `norm_sum_experts_${count}_${lanes}x${EACH}` },
  );
  return dispatch(kernel, {
    buffers: {
      // The kernel computes the ranges' stride from its size.
      sums: { ...x.sums, size: 4 * x.splitK * rows * cols },
      sums_weight: x.weight,
      out,
      outputs: experts.outputs,
      shares: experts.shares,
      experts_weight: experts.weight,
    },
    constants: { COLS: cols, EPS: eps, LANES: lanes, SPLIT_K: x.splitK },
    workgroups: [rows],
    label,
    work: { bytes: 4 * rows * cols * (x.splitK + count + 1) + 8 * cols, flops: 9 * rows * cols },
  });
}
