import { normsOnUnits } from "../../../../kernels/matmul/prologue/norms_on_units.ts";
import { normsRows } from "../../../../kernels/matmul/prologue/norms_rows.ts";
import type { DecoderContext } from "../../graph/context.ts";
import type { Edits } from "../edits.ts";
import { epilogueBuffers } from "../emit/matmul.ts";
import type { MatmulPrologue, NormSource, OpOf } from "../ops.ts";
import type { Rewrite } from "../rewrite.ts";

/**
 * The only matmul that reads normed rows norms them itself, where that costs less than a dispatch. The new residual
 * stream is written to another buffer, because all workgroups of the matmul still read the old one.
 */
export const normInMatmul: Rewrite = {
  name: "norm_in_matmul",
  apply(edits, context) {
    for (const matmul of edits.ops) {
      if (matmul.kind !== "matmul") continue;
      const fused = fusedNorm(edits, matmul, context);
      if (!fused) continue;
      // The matmul takes the norm's place, so it stores the residual stream before its other readers run.
      edits.replace(fused.norm, fuseNorm(matmul, fused));
      edits.remove(matmul);
    }
  },
};

/**
 * Returns the matmul with the norm fused into it.
 *
 * @param stores whether the matmul stores the new residual stream; default true.
 */
export function fuseNorm(
  matmul: OpOf<"matmul">,
  { norm: { from, weight, eps, keep, storesScales }, widen }: FusedNorm,
  stores = true,
): OpOf<"matmul"> {
  const prologue: MatmulPrologue = {
    of: "norm",
    from,
    weight,
    eps,
    window: keep && "window" in keep ? keep.window : undefined,
    stores,
    widen,
    // Before an MLP this is not needed: the norm before the attention has reset the scales to the largest value.
    lowers: storesScales && matmul.epilogue.of !== "gate" && !matmul.logits,
  };
  return { ...matmul, x: from.x, prologue };
}

/** A norm that a matmul may do itself. */
export interface FusedNorm {
  readonly norm: OpOf<"norm"> & {
    readonly from: Extract<NormSource, { of: "rows" | "sums" | "normed" | "experts" }> & {
      readonly x: NonNullable<Extract<NormSource, { of: "sums" }>["x"]>;
    };
  };
  /** See `normsRows`. */
  readonly widen: number;
}

/**
 * Returns the norm that a matmul should do itself because that is faster; undefined if there is none.
 *
 * @param readers most readers of the normed rows; default: the matmul alone.
 */
export function fusedNorm(
  edits: Edits,
  matmul: OpOf<"matmul">,
  { config: { hiddenSize }, tuning }: DecoderContext,
  readers = 1,
): FusedNorm | undefined {
  const { x, matrix, epilogue, logits } = matmul;
  if (matmul.prologue || logits && (epilogue.of !== "partials" || matrix.shards.length > 1)) return;
  const norm = edits.writer(x);
  if (norm?.kind !== "norm" || edits.readers(x).length > readers || x.at) return;
  const { from, put, first, cols, keep } = norm;
  if (put !== "store" || first > 0 || cols !== hiddenSize || cols !== x.cols) return;
  if (from.of === "tokens" || !from.x || from.of === "normed" && from.experts) return;
  if (from.of === "rows" && from.index) return;
  // Matmuls that add the experts' outputs cannot add biases.
  if (from.of === "experts" && from.bias) return;
  const kept = keep && "window" in keep;
  if (keep && !kept) return;
  const added = from.of === "rows"
    ? undefined
    : from.of === "experts"
    ? { experts: from.shares.cols }
    : { splitK: from.y.parts, branch: from.of === "normed" ? from : undefined };
  const use = {
    rows: x.rows,
    added,
    bound: epilogueBuffers(epilogue) + Number(kept ?? false),
    tuning: matmul.onUnits ? tuning : { ...tuning, tensor: undefined },
  };
  const widen = normsRows(matrix, use) ?? (!kept && normsOnUnits(matrix, use) ? 1 : undefined);
  // The kernel that counts partial results of logits knows workgroups of the usual size.
  if (widen === undefined || logits && widen > 1) return undefined;
  return { norm: norm as FusedNorm["norm"], widen };
}
