import { relaysHeads } from "../../../../kernels/attention/relayed_heads.ts";
import { PLAIN_ROWS } from "../../../../kernels/matmul/hold/hold.ts";
import { holdOf } from "../emit.ts";
import { onPaper } from "../lifetimes.ts";
import type { Rewrite } from "../rewrite.ts";

/** q, k and v of one row and the attention that places them go in one dispatch: keys are on their way meanwhile. */
export const relayedHeads: Rewrite = {
  name: "relayed_heads",
  apply(edits, context) {
    for (const attention of edits.ops) {
      if (!context.relay || attention.kind !== "attention" || !attention.own) continue;
      const qkv = edits.writer(attention.own.qkv);
      if (qkv?.kind !== "matmul" || qkv.epilogue.of !== "store") continue;
      // Every word is waited for once: nobody waits for a gate behind q, k and v, and a row without v has keys read
      // twice.
      const { heads: { heads, kvHeads, headDim } } = attention;
      if (qkv.out.cols !== (heads + 2 * kvHeads) * headDim) continue;
      const hold = qkv.hold ? holdOf({ context, at: onPaper }, qkv, qkv.hold) : PLAIN_ROWS;
      if (!relaysHeads(qkv.matrix, { hold, headDim, tuning: context.tuning })) continue;
      const { label, part, forCells } = attention;
      const relayed = { kind: "relayed_heads", qkv, attention, label, part, forCells } as const;
      // For more cells the matmul stays: other operations read what it stores.
      const many = forCells && !qkv.forCells
        ? [{ ...qkv, forCells: { from: forCells.upTo + 1, upTo: Infinity } }]
        : [];
      // In the matmul's place, because what else reads the residual stream that it stores comes after it.
      edits.replace(qkv, relayed, ...many);
      edits.remove(attention);
    }
  },
};
