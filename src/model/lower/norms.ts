/** What several rewrites ask about norms, and the norm of a matmul's rows. */
import { normsOnUnits } from "../../../kernels/matmul/prologue/norms_on_units.ts";
import { normsRows } from "../../../kernels/matmul/prologue/norms_rows.ts";
import type { DecoderContext } from "../graph/context.ts";
import type { Value } from "../graph/graph.ts";
import type { Edits } from "./edits.ts";
import { epilogueBuffers } from "./emit/matmul.ts";
import type { MatmulPrologue, NormSource, OpOf } from "./ops.ts";

/** Most experts of a row whose outputs a norm or an experts' matmul adds; one limit for both: sums keep one order. */
export const MAX_EXPERTS = 16;

/** The rows that a norm reads, whole or as partial sums; undefined if it gathers them or adds anything else. */
export function rowsOf(from: NormSource): Value | undefined {
  if (from.of === "rows" && !from.index) return from.x;
  return from.of === "sums" && !from.x ? from.y : undefined;
}

/** The norm of a sum, if it may compute the sum itself: no reader of the sum in another part may be before the norm. */
export function normAfter(
  edits: Edits,
  { out }: Pick<OpOf<"add">, "out">,
): OpOf<"norm"> | undefined {
  const readers = edits.readers(out);
  const norm = readers.find((op) => op.kind === "norm");
  if (norm?.kind !== "norm" || norm.from.of !== "rows" || norm.from.index) return undefined;
  const late = readers.some((op) => op.part !== norm.part && edits.isBefore(op, norm));
  return late ? undefined : norm;
}

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
    resets: storesScales && matmul.epilogue.of !== "gate" && !matmul.logits,
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
