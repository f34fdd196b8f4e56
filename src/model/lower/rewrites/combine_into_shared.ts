import type { Rewrite } from "../rewrite.ts";

/** The sum of the routed experts is added to the shared expert's output; to its first part if split-K left several. */
export const combineIntoShared: Rewrite = {
  name: "combine_into_shared",
  changesBits: true,
  apply(edits) {
    for (const add of edits.ops) {
      if (add.kind !== "add") continue;
      const combine = edits.producer(add.y, add, "combine");
      if (!combine || !edits.producer(add.x, add, "matmul")) continue;
      edits.replace(combine, { ...combine, to: add.x, out: add.out });
      edits.remove(add);
    }
  },
};
