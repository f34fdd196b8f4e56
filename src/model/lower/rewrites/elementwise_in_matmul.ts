import type { Rewrite } from "../rewrite.ts";

/** A matmul stores its outputs scaled or capped. */
export const elementwiseInMatmul: Rewrite = {
  name: "elementwise_in_matmul",
  apply(edits) {
    for (const op of edits.ops) {
      if (op.kind !== "elementwise" || edits.soleReader(op.x) !== op) continue;
      const made = edits.writer(op.x);
      if (made?.kind !== "matmul" || made.epilogue.of !== "store") continue;
      edits.replace(made, { ...made, out: op.out, epilogue: op.f });
      edits.remove(op);
    }
  },
};
