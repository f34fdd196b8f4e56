import type { Rewrite } from "../rewrite.ts";

/** The norm after a branch adds its rows to the residual stream. */
export const addAfterNorm: Rewrite = {
  name: "add_after_norm",
  apply(edits) {
    for (const add of edits.ops) {
      if (add.kind !== "add") continue;
      const norm = edits.producer(add.y, add, "norm");
      if (norm?.put !== "store" || norm.first > 0) continue;
      edits.remove(norm);
      edits.replace(add, { ...norm, put: "add", to: add.x, out: add.out, part: add.part });
    }
  },
};
