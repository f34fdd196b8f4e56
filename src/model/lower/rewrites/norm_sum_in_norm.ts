import { branchBuffers } from "../../../../kernels/norm/rms_norm.ts";
import type { Rewrite } from "../rewrite.ts";

/**
 * If the branch is itself a sum of two normed branches (Gemma 4), the norm that adds the normed branch to the residual
 * stream also computes that sum.
 */
export const normSumInNorm: Rewrite = {
  name: "norm_sum_in_norm",
  apply(edits, { scales, tuning: { storageBuffers } }) {
    for (const norm of edits.ops) {
      if (norm.kind !== "norm" || norm.from.of !== "normed") continue;
      const { y, scalar } = norm.from;
      const sum = edits.producer(y, norm, "norm_sum");
      if (sum?.eps !== norm.eps) continue;
      const kept = norm.keep === undefined ? 0 : norm.keep.what === "slot" ? 2 : 1;
      const scaled = scalar !== undefined;
      const bound = branchBuffers({ scaled, storesScales: scales !== undefined, experts: true });
      if (bound + kept > storageBuffers) continue;
      const { x, experts } = sum;
      edits.remove(sum);
      edits.replace(norm, {
        ...norm,
        from: { ...norm.from, y: x.y, experts: { ...experts, sumsWeight: x.weight } },
      });
    }
  },
};
