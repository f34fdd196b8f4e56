import { Edits } from "../edits.ts";
import type { Rewrite } from "../rewrite.ts";

/** A matmul stores its outputs times a number. */
export const scaleInMatmul: Rewrite = {
  name: "scale_in_matmul",
  apply(ops) {
    const edits = new Edits(ops);
    for (const scale of ops) {
      if (scale.kind !== "scale") continue;
      const made = edits.writer(scale.x);
      if (made?.kind !== "matmul" || made.epilogue.of !== "store") continue;
      if (edits.soleReader(scale.x) !== scale) continue;
      edits.replace(made, { ...made, out: scale.out, epilogue: { of: "scale", by: scale.by } });
      edits.remove(scale);
    }
    return edits.done();
  },
};
