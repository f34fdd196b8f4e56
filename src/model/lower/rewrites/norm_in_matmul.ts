import { fusedNorm, fuseNorm } from "../norms.ts";
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
