import type { Rewrite } from "../rewrite.ts";

/** The sum of the experts is added to the residual stream, where no norm does it. */
export const combineInStream: Rewrite = {
  name: "combine_in_stream",
  apply(edits) {
    for (const add of edits.ops) {
      if (add.kind !== "add") continue;
      const combine = edits.writer(add.y);
      if (combine?.kind !== "combine" || combine.to || edits.soleReader(add.y) !== add) continue;
      edits.remove(combine);
      edits.replace(add, { ...combine, to: add.x, out: add.out, part: add.part });
    }
  },
};
