import type { Rewrite } from "../rewrite.ts";

/** A norm gathers its rows by index itself, and scatters them by slot if they are kept. */
export const gatherInNorm: Rewrite = {
  name: "gather_in_norm",
  apply(edits) {
    for (const gather of edits.ops) {
      if (gather.kind !== "gather" || gather.out.at || gather.first > 0) continue;
      const readers = edits.readers(gather.out);
      const norm = readers.find((op) => op.kind === "norm");
      const scatter = readers.find((op) => op.kind === "scatter");
      if (norm?.kind !== "norm" || norm.from.of !== "rows" || norm.keep) continue;
      if (readers.length !== (scatter ? 2 : 1)) continue;
      const { x, index } = gather;
      edits.remove(gather);
      edits.replace(norm, {
        ...norm,
        from: { of: "rows", x, index },
        ...scatter?.kind === "scatter" &&
          { keep: { what: "slot", out: scatter.out, slot: scatter.index } },
      });
      if (scatter) edits.remove(scatter);
    }
  },
};
