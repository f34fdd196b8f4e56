import type { OpOf } from "../ops.ts";
import type { Rewrite } from "../rewrite.ts";

/** A norm that reads rows which are also copied or scattered stores that second output itself. */
export const copyInNorm: Rewrite = {
  name: "copy_in_norm",
  apply(edits) {
    for (const norm of edits.ops) {
      const x = norm.kind === "norm" && !norm.keep ? inputOf(norm) : undefined;
      if (norm.kind !== "norm" || !x) continue;
      const copy = edits.readers(x).find(({ kind }) => kind === "copy" || kind === "scatter");
      if (!copy || edits.isChanged(copy) || copy.part !== norm.part) continue;
      if (copy.kind === "copy") {
        edits.replace(norm, { ...norm, keep: { what: "input", window: copy.to } });
      }
      if (copy.kind === "scatter") {
        const keep = { what: "slot", out: copy.out, slot: copy.index } as const;
        edits.replace(norm, { ...norm, keep });
      }
      edits.remove(copy);
    }
  },
};

/** The rows that a norm norms, if they are stored as a value. */
function inputOf({ from }: OpOf<"norm">) {
  switch (from.of) {
    case "rows":
      return from.index ? undefined : from.x;
    case "sums":
    case "normed":
    case "experts":
      return from.stream;
    case "tokens":
      return undefined;
  }
}
