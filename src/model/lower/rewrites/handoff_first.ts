import { handsOffFirst } from "../../../../kernels/matmul/handoff/handoff.ts";
import { prologueBuffers, prologueOf } from "../emit/matmul.ts";
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
      const { gateUp, down } = mlp;
      if (gateUp.prologue?.of !== "norm" || gateUp.prologue.from.of !== "sums") continue;
      const first = edits.writers(gateUp.prologue.from.y).find((op) =>
        op.kind === "matmul" && op.prologue?.of === "splits" && op.epilogue.of === "store"
      );
      if (first?.kind !== "matmul" || !first.prologue || !first.forCells) continue;
      const prologue = prologueOf({ context, at: onPaper }, first, first.prologue);
      const splitK = first.out.parts;
      const use = { gateUp: gateUp.matrix, down: down.matrix, splitK: down.out.parts, tuning };
      const { matrix, forCells } = first;
      if (!handsOffFirst({ matrix, splitK, prologue }, use, prologueBuffers(context, gateUp))) {
        continue;
      }
      edits.remove(first);
      edits.replace(
        mlp,
        { ...mlp, first, forCells },
        { ...mlp, forCells: { from: forCells.upTo + 1, upTo: Infinity } },
      );
    }
  },
};
