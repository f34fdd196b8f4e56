import { normAfter } from "../norms.ts";
import type { Rewrite } from "../rewrite.ts";

/** A norm first adds a branch to the residual stream that it norms, with all partial sums if split-K left several. */
export const addInNorm: Rewrite = {
  name: "add_in_norm",
  apply(edits) {
    for (const add of edits.ops) {
      if (add.kind !== "add") continue;
      const norm = normAfter(edits, add);
      if (!norm) continue;
      const { x, y, out: stream } = add;
      edits.remove(norm);
      edits.replace(add, { ...norm, from: { of: "sums", x, y, stream } });
    }
  },
};
