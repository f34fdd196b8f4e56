import { SPLIT_CELLS } from "../../../../kernels/attention/splits.ts";
import { combinesHeads } from "../../../../kernels/matmul/prologue/norms_rows.ts";
import { MAX_SPLITS } from "../../../../kernels/matmul/prologue/prologue.ts";
import { attendOnce, attendsOnUnits } from "../emit/attention.ts";
import { onPaper } from "../lifetimes.ts";
import type { Rewrite } from "../rewrite.ts";
import { epilogueBuffers } from "../emit/matmul.ts";

/** Where slots have few cells, the matmul `o` combines the splits of attention itself. */
export const splitsInMatmul: Rewrite = {
  name: "splits_in_matmul",
  apply(edits, context) {
    const { tuning } = context;
    for (const o of edits.ops) {
      if (o.kind !== "matmul" || o.prologue) continue;
      const attention = edits.producer(o.x, o, "attention");
      // Partial sums of matrix units are combined in a way that no other kernel implements.
      if (!attention || attendsOnUnits(attention, context)) continue;
      const { sinks, gate } = attention;
      const bound = epilogueBuffers(o.epilogue) + Number(sinks !== undefined) +
        Number(gate !== undefined);
      const use = { rows: o.x.rows, splitK: o.out.parts, bound, tuning };
      const widen = combinesHeads(o.matrix, use) ? 1 : 2;
      if (attendOnce({ context, at: onPaper }, attention).length !== 2) continue;
      if (!combinesHeads(o.matrix, { ...use, widen })) continue;
      const most = MAX_SPLITS * SPLIT_CELLS;
      const scores = { ...attention, stage: "scores" } as const;
      const many = { from: most + 1, upTo: Infinity };
      edits.replace(attention, scores);
      edits.replace(
        o,
        {
          ...o,
          prologue: { of: "splits", attention: scores, widen },
          forCells: { from: 0, upTo: most },
        },
        { ...attention, stage: "combine", forCells: many },
        { ...o, forCells: many },
      );
    }
  },
};
