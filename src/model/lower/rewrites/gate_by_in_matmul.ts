import type { Rewrite } from "../rewrite.ts";

/** A matmul whose output gates other numbers stores the products: Gemma 4's embeddings of a layer. */
export const gateByInMatmul: Rewrite = {
  name: "gate_by_in_matmul",
  apply(edits) {
    for (const gated of edits.ops) {
      if (gated.kind !== "gate_by") continue;
      const made = edits.producer(gated.x, gated, "matmul");
      if (made?.epilogue.of !== "store") continue;
      const { by, first, out } = gated;
      if (edits.writers(by).some((writer) => !edits.isBefore(writer, made))) continue;
      edits.replace(made, { ...made, out, epilogue: { of: "gate_by", by, first } });
      edits.remove(gated);
    }
  },
};
