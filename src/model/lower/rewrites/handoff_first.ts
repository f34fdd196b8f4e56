import { canBeJoined } from "../../../../kernels/joined.ts";
import { handsOffFirst } from "../../../../kernels/matmul/handoff/handoff.ts";
import { emitHandoffMlp } from "../emit/handoff.ts";
import { prologueOf } from "../emit/matmul.ts";
import { onPaper } from "../lifetimes.ts";
import type { Rewrite } from "../rewrite.ts";

/**
 * For one row and slots with few cells, the matmul `o` joins the dispatch of the MLP after it, which norms its sums.
 */
export const handoffFirst: Rewrite = {
  name: "handoff_first",
  apply(edits, context) {
    const { tuning } = context;
    for (const mlp of edits.ops) {
      if (mlp.kind !== "handoff_mlp") continue;
      const { gateUp } = mlp;
      if (gateUp.prologue?.of !== "norm" || gateUp.prologue.from.of !== "sums") continue;
      const first = edits.writers(gateUp.prologue.from.y).find((op) =>
        op.kind === "matmul" && op.prologue?.of === "splits" && op.epilogue.of === "store"
      );
      if (first?.kind !== "matmul" || !first.prologue || !first.forCells) continue;
      const prologue = prologueOf({ context, at: onPaper }, first, first.prologue);
      const { matrix, out: { parts: splitK }, forCells } = first;
      const use = { gateUp: gateUp.matrix, tuning };
      if (!handsOffFirst({ matrix, splitK, prologue }, use)) continue;
      const all = { ...mlp, first, forCells };
      if (!canBeJoined(emitHandoffMlp({ context, at: onPaper }, all), tuning)) continue;
      edits.remove(first);
      edits.replace(
        mlp,
        all,
        { ...mlp, forCells: { from: forCells.upTo + 1, upTo: Infinity } },
      );
    }
  },
};
