import type { Edits } from "../edits.ts";
import type { OpOf } from "../ops.ts";
import type { Rewrite } from "../rewrite.ts";

/** A norm adds a branch to the residual stream before it norms it: the parts of a sum over ranges of k with it. */
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

/** A norm that may replace the sum it reads: the other readers of the sum run after it. */
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
