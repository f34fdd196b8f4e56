import { branchBuffers } from "../../../../kernels/norm/rms_norm.ts";
import { normAfter, rowsOf } from "../norms.ts";
import type { Rewrite } from "../rewrite.ts";

/**
 * If a branch is normed before it is added to the residual stream, the next norm of the stream does both, and also
 * multiplies the stream by the layer's scalar. It can, because one workgroup has the whole row.
 */
export const branchInNorm: Rewrite = {
  name: "branch_in_norm",
  apply(edits, { scales, tuning: { storageBuffers } }) {
    for (const branch of edits.ops) {
      if (branch.kind !== "norm" || branch.put !== "add" || !branch.to || branch.keep) continue;
      const y = rowsOf(branch.from);
      const scale = edits.soleReader(branch.out);
      const { out: stream, scalar } = scale?.kind === "scale_by"
        ? scale
        : { out: branch.out, scalar: undefined };
      const norm = normAfter(edits, { out: stream });
      if (!y || norm?.put !== "store") continue;
      const kept = norm.keep === undefined ? 0 : norm.keep.what === "slot" ? 2 : 1;
      const bound = branchBuffers({
        scaled: scalar !== undefined,
        storesScales: scales !== undefined,
      });
      if (bound + kept > storageBuffers) continue;
      const from = {
        of: "normed",
        x: branch.to,
        y,
        weight: branch.weight,
        eps: branch.eps,
        scalar,
        stream,
      } as const;
      edits.replace(branch, { ...norm, from });
      edits.remove(norm, ...scalar && scale ? [scale] : []);
    }
  },
};
