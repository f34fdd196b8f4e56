import type { Rewrite } from "../rewrite.ts";

/** Norms, gathers and embeddings write directly to their columns of the concatenation that reads them. */
export const concatInPlace: Rewrite = {
  name: "concat_in_place",
  apply(edits) {
    for (const op of edits.ops) {
      if (op.kind !== "place" || edits.soleReader(op.x) !== op) continue;
      const writer = edits.writer(op.x);
      const { out, first } = op;
      if (writer?.kind === "norm" || writer?.kind === "gather") {
        edits.replace(writer, { ...writer, out, first });
        edits.remove(op);
      }
      // An embedding can only be written from the first column on.
      if (writer?.kind === "embed" && first === 0) {
        edits.replace(writer, { ...writer, out });
        edits.remove(op);
      }
    }
  },
};
