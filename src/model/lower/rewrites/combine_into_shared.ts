import type { Rewrite } from "../rewrite.ts";

/** The sum of the routed experts is added to the shared expert's output; to its first part if split-K left several. */
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
