import type { Rewrite } from "../rewrite.ts";

/** A matmul adds its outputs to the residual stream. */
export const addInMatmul: Rewrite = {
  name: "add_in_matmul",
  apply(edits) {
    for (const add of edits.ops) {
      if (add.kind !== "add" || add.y.parts > 1) continue;
      const made = edits.producer(add.y, add, "matmul");
      if (made?.epilogue.of !== "store") continue;
      edits.remove(made);
      edits.replace(add, {
        ...made,
        out: add.out,
        epilogue: { of: "add", to: add.x },
        part: add.part,
      });
    }
  },
};
