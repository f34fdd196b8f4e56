import type { Rewrite } from "../rewrite.ts";

/** The norm of an embedding reads the table itself. It also stores the embedding if others read that. */
export const embedInNorm: Rewrite = {
  name: "embed_in_norm",
  apply(edits) {
    for (const norm of edits.ops) {
      if (norm.kind !== "norm" || norm.from.of !== "rows" || norm.from.index) continue;
      const { x } = norm.from;
      const embed = edits.writer(x);
      if (embed?.kind !== "embed" || edits.isChanged(embed)) continue;
      const { table, rows, scale } = embed;
      const kept = edits.readers(x).length > 1 || x.at !== undefined;
      edits.replace(embed, {
        ...norm,
        from: { of: "tokens", table, rows, scale, verified: undefined },
        keep: kept ? { what: "input", out: x } : undefined,
      });
      edits.remove(norm);
    }
  },
};
