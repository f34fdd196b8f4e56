import type { Rewrite } from "../rewrite.ts";

/** A matmul stores its outputs scaled or capped. */
export const elementwiseInMatmul: Rewrite = {
  name: "elementwise_in_matmul",
  apply(edits) {
    for (const op of edits.ops) {
      if (op.kind !== "elementwise") continue;
      const made = edits.producer(op.x, op, "matmul");
      if (made?.epilogue.of !== "store") continue;
      edits.replace(made, { ...made, out: op.out, epilogue: op.f });
      edits.remove(op);
    }
  },
};
