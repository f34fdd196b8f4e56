import { Edits } from "../edits.ts";
import type { Rewrite } from "../rewrite.ts";

/** Norms, gathered rows and embeddings that go side by side are written there. */
export const concatInPlace: Rewrite = {
  name: "concat_in_place",
  apply(ops) {
    const edits = new Edits(ops);
    for (const op of ops) {
      if (op.kind !== "place" || edits.soleReader(op.x) !== op) continue;
      const writer = edits.writer(op.x);
      const { out, first } = op;
      if (writer?.kind === "embed" && first > 0) continue;
      if (writer?.kind === "norm" || writer?.kind === "gather" || writer?.kind === "embed") {
        edits.replace(writer, { ...writer, out, first });
        edits.remove(op);
      }
    }
    return edits.done();
  },
};
