import type { Edits } from "../edits.ts";
import type { OpOf } from "../ops.ts";
import type { Rewrite } from "../rewrite.ts";

/** A norm first adds a branch to the residual stream that it norms, with all partial sums if split-K left several. */
export const addInNorm: Rewrite = {
  name: "add_in_norm",
  apply(edits) {
    for (const add of edits.ops) {
      if (add.kind !== "add") continue;
      const norm = normAfter(edits, add);
      if (!norm) continue;
      const { x, y, out: stream } = add;
      edits.remove(norm);
      edits.replace(add, { ...norm, from: { of: "sums", x, y, stream } });
    }
  },
};

/** The norm of a sum, if it may compute the sum itself: no reader of the sum in another part may be before the norm. */
export function normAfter(
  edits: Edits,
  { out }: Pick<OpOf<"add">, "out">,
): OpOf<"norm"> | undefined {
  const readers = edits.readers(out);
  const norm = readers.find((op) => op.kind === "norm");
  if (norm?.kind !== "norm" || norm.from.of !== "rows" || norm.from.index) return undefined;
  const late = readers.some((op) => op.part !== norm.part && edits.isBefore(op, norm));
  return late ? undefined : norm;
}
