import type { Rewrite } from "../rewrite.ts";

/** The kernel that sums the experts' outputs adds the sum to the residual stream, where no norm does. */
export const combineInStream: Rewrite = {
  name: "combine_in_stream",
  apply(edits) {
    for (const add of edits.ops) {
      if (add.kind !== "add") continue;
      const combine = edits.producer(add.y, add, "combine");
      if (!combine || combine.to) continue;
      edits.remove(combine);
      edits.replace(add, { ...combine, to: add.x, out: add.out, part: add.part });
    }
  },
};
