import type { Rewrite } from "../rewrite.ts";

/** The sum of the routed experts is added to what the shared expert leaves: to its first part, where it has several. */
export const combineIntoShared: Rewrite = {
  name: "combine_into_shared",
  changesBits: true,
  apply(edits) {
    for (const add of edits.ops) {
      if (add.kind !== "add") continue;
      const combine = edits.writer(add.y);
      if (combine?.kind !== "combine" || edits.soleReader(add.y) !== add) continue;
      if (edits.writer(add.x)?.kind !== "matmul" || edits.soleReader(add.x) !== add) continue;
      edits.replace(combine, { ...combine, to: add.x, out: add.out });
      edits.remove(add);
    }
  },
};
