import { Edits } from "../edits.ts";
import type { Rewrite } from "../rewrite.ts";

/** A matmul stores its outputs capped. */
export const capInMatmul: Rewrite = {
  name: "cap_in_matmul",
  apply(ops) {
    const edits = new Edits(ops);
    for (const cap of ops) {
      if (cap.kind !== "soft_cap") continue;
      const made = edits.writer(cap.x);
      if (made?.kind !== "matmul" || made.epilogue.of !== "store") continue;
      if (edits.soleReader(cap.x) !== cap) continue;
      edits.replace(made, { ...made, out: cap.out, epilogue: { of: "cap", most: cap.most } });
      edits.remove(cap);
    }
    return edits.done();
  },
};
