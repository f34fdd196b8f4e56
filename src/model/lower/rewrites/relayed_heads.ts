import { relaysHeads } from "../../../../kernels/attention/relayed_heads.ts";
import { PLAIN_ROWS } from "../../../../kernels/matmul/hold/hold.ts";
import { Edits } from "../edits.ts";
import { holdOf } from "../emit.ts";
import { onPaper } from "../lifetimes.ts";
import type { Rewrite } from "../rewrite.ts";

/** q, k and v of one row and the attention that places them go in one dispatch: keys are on their way meanwhile. */
export const relayedHeads: Rewrite = {
  name: "relayed_heads",
  apply(ops, context) {
    const edits = new Edits(ops);
    for (const attention of ops) {
      if (!context.relay || attention.kind !== "attention" || !attention.own) continue;
      const qkv = edits.writer(attention.own.qkv);
      if (qkv?.kind !== "matmul" || qkv.epilogue.of !== "store") continue;
      const hold = qkv.hold ? holdOf({ context, at: onPaper }, qkv, qkv.hold) : PLAIN_ROWS;
      if (!relaysHeads(qkv.matrix, hold, context.tuning)) continue;
      const { label, part, forCells } = attention;
      // The matmul is left for more cells, where others read what it leaves.
      if (forCells && !qkv.forCells) {
        edits.replace(qkv, { ...qkv, forCells: { from: forCells.upTo + 1, upTo: Infinity } });
      } else edits.remove(qkv);
      edits.replace(attention, { kind: "relayed_heads", qkv, attention, label, part, forCells });
    }
    return edits.done();
  },
};
