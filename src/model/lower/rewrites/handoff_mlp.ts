import { canBeJoined } from "../../../../kernels/joined.ts";
import { handsOff } from "../../../../kernels/matmul/handoff/handoff.ts";
import { splitKOf } from "../../../../kernels/matmul/matmul_shape.ts";
import { emitHandoffMlp } from "../emit/handoff.ts";
import { onPaper } from "../lifetimes.ts";
import type { Rewrite } from "../rewrite.ts";

/** Both matmuls of one row's MLP share a dispatch: workgroups of the second wait for the outputs of the first. */
export const handoffMlp: Rewrite = {
  name: "handoff_mlp",
  apply(edits, context) {
    const { tuning } = context;
    for (const gateUp of edits.ops) {
      if (!context.handoff || gateUp.kind !== "matmul" || gateUp.epilogue.of !== "gate") continue;
      if (gateUp.x.rows > 1 || gateUp.prologue?.of === "splits") continue;
      const down = edits.soleReader(gateUp.out);
      if (down?.kind !== "matmul" || down.epilogue.of !== "store") continue;
      const splitK = splitKOf(down.matrix, tuning);
      if (down.out.parts !== splitK) continue;
      if (!handsOff({ gateUp: gateUp.matrix, down: down.matrix, splitK, tuning })) continue;
      const { part } = down;
      const label = gateUp.label.replace("gateUp", "mlp");
      const mlp = { kind: "handoff_mlp", gateUp, down, first: undefined, label, part } as const;
      if (!canBeJoined(emitHandoffMlp({ context, at: onPaper }, mlp), tuning)) continue;
      edits.remove(gateUp);
      edits.replace(down, mlp);
    }
  },
};
