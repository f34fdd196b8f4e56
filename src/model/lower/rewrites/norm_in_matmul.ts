import { QKV_BUFFERS } from "../../../../kernels/matmul/qkv.ts";
import { normsOnUnits } from "../../../../kernels/matmul/hold/norms_on_units.ts";
import { normsRows } from "../../../../kernels/matmul/hold/norms_rows.ts";
import type { DecoderContext } from "../../graph/context.ts";
import type { Edits } from "../edits.ts";
import type { MatmulEpilogue, MatmulHold, NormSource, OpOf } from "../ops.ts";
import type { Rewrite } from "../rewrite.ts";

/**
 * A matmul that alone reads normed rows norms them itself, where that costs less than a dispatch. The residual stream
 * moves to another buffer, because all workgroups of the matmul read it.
 */
export const normInMatmul: Rewrite = {
  name: "norm_in_matmul",
  apply(edits, context) {
    for (const matmul of edits.ops) {
      if (matmul.kind !== "matmul") continue;
      const norm = normHeldBy(edits, matmul, context);
      if (!norm) continue;
      const { from, weight, eps, keep, notes } = norm;
      const hold: MatmulHold = {
        of: "norm",
        from,
        weight,
        eps,
        window: keep && "window" in keep ? keep.window : undefined,
        // Before an MLP the attention's norm has made them the largest.
        lowers: notes && matmul.epilogue.of !== "gate" && !matmul.logits,
      };
      // What else reads the residual stream comes after the norm, so after the matmul that stores it.
      edits.replace(norm, { ...matmul, x: from.x, hold });
      edits.remove(matmul);
    }
  },
};

/** Storage buffers that an epilogue binds. */
export function epilogueBuffers(epilogue: MatmulEpilogue): number {
  if (epilogue.of === "heads") return QKV_BUFFERS + Number(epilogue.bias !== undefined);
  return Number(epilogue.of === "bias");
}

type HeldNorm = OpOf<"norm"> & {
  readonly from: Extract<NormSource, { of: "rows" | "sums" | "experts" }> & {
    readonly x: NonNullable<Extract<NormSource, { of: "sums" }>["x"]>;
  };
};

/** The norm whose rows a matmul had better norm itself. */
export function normHeldBy(
  edits: Edits,
  matmul: OpOf<"matmul">,
  { config: { hiddenSize }, tuning }: DecoderContext,
): HeldNorm | undefined {
  const { x, matrix, epilogue, logits } = matmul;
  if (matmul.hold || logits && (epilogue.of !== "partials" || matrix.shards.length > 1)) return;
  const norm = edits.writer(x);
  if (norm?.kind !== "norm" || edits.readers(x).length > 1 || x.at) return;
  const { from, put, first, cols, keep } = norm;
  if (put !== "store" || first > 0 || cols !== hiddenSize || cols !== x.cols) return;
  if (from.of === "tokens" || !from.x || from.of === "rows" && from.index) return;
  // Matmuls that add experts do not know of their biases.
  if (from.of === "experts" && from.bias) return;
  const kept = keep && "window" in keep;
  if (keep && !kept) return;
  const added = from.of === "rows"
    ? undefined
    : from.of === "sums"
    ? { splitK: from.y.parts }
    : { experts: from.shares.cols };
  const use = {
    rows: x.rows,
    added,
    bound: epilogueBuffers(epilogue) + Number(kept ?? false),
    tuning,
  };
  const norms = normsRows(matrix, use) || !kept && normsOnUnits(matrix, use);
  return norms ? norm as HeldNorm : undefined;
}
