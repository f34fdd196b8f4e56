import { tilesLatents } from "../../../../kernels/mla/latent_attention.ts";
import { mergesRuns } from "../../../../kernels/mla/latent_value.ts";
import type { Rewrite } from "../rewrite.ts";

/** For few rows the dispatch that combines the splits of latent attention also computes the values. */
export const valueInAttention: Rewrite = {
  name: "value_in_attention",
  apply(edits, { tuning }) {
    for (const op of edits.ops) {
      if (op.kind !== "latent_value") continue;
      const attention = edits.producer(op.x, op, "latent_attention");
      if (!attention) continue;
      const { of: { count }, heads } = attention;
      if (!tilesLatents(heads, tuning) || !mergesRuns({ count, tuning })) continue;
      const { heads: ofValue, kvB, out, storesScales } = op;
      edits.replace(attention, { ...attention, value: { heads: ofValue, kvB, out, storesScales } });
      edits.remove(op);
    }
  },
};
