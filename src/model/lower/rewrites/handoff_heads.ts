import { handsOffHeads } from "../../../../kernels/attention/handoff_heads.ts";
import { canBeJoined } from "../../../../kernels/joined.ts";
import { emitHandoffHeads } from "../emit/handoff.ts";
import { onPaper } from "../lifetimes.ts";
import type { Rewrite } from "../rewrite.ts";

/** The matmul of q, k and v of one row and its attention share a dispatch, which loads stored keys while it waits. */
export const headsWithHandoff: Rewrite = {
  name: "handoff_heads",
  apply(edits, context) {
    for (const attention of edits.ops) {
      if (!context.handoff || attention.kind !== "attention" || !attention.own) continue;
      const qkv = edits.writer(attention.own.qkv);
      if (qkv?.kind !== "matmul" || qkv.epilogue.of !== "store") continue;
      // Every word must be waited for exactly once. No workgroup waits for a gate after q, k and v, and without v the
      // keys are read twice.
      const { heads: { heads, kvHeads, headDim } } = attention;
      if (qkv.out.cols !== (heads + 2 * kvHeads) * headDim) continue;
      if (!handsOffHeads(qkv.matrix, { headDim, tuning: context.tuning })) continue;
      const { label, part, forCells } = attention;
      const handoff = { kind: "handoff_heads", qkv, attention, label, part, forCells } as const;
      const to = { context, at: onPaper };
      if (!canBeJoined(emitHandoffHeads(to, handoff), context.tuning)) continue;
      // For more cells the matmul stays separate: other operations read its output there.
      const many = forCells && !qkv.forCells
        ? [{ ...qkv, forCells: { from: forCells.upTo + 1, upTo: Infinity } }]
        : [];
      // It takes the matmul's place, so it stores the residual stream before the stream's other readers run.
      edits.replace(qkv, handoff, ...many);
      edits.remove(attention);
    }
  },
};
