import {
  canStorePartials,
  matmulPartialCount,
} from "../../../../kernels/matmul/matmul_partials.ts";
import { PLAIN_ROWS } from "../../../../kernels/matmul/prologue/prologue.ts";
import { PARTIAL_WORDS } from "../../../../kernels/lib/partial.ts";
import { widen } from "../../graph/graph.ts";
import { fusedNorm } from "../norms.ts";
import type { OpOf } from "../ops.ts";
import type { Rewrite } from "../rewrite.ts";

/** The head stores a partial result per group of columns instead of its logits, if nothing else reads the logits. */
export const partialsInMatmul: Rewrite = {
  name: "partials_in_matmul",
  apply(edits, context) {
    const { tuning } = context;
    for (const partials of edits.ops) {
      if (partials.kind !== "partials") continue;
      const { logits, choice, vocab, most = Infinity } = partials;
      const head = edits.writer(logits);
      // A soft cap may make different logits equal, and of equal logits the lowest token wins.
      if (head?.kind !== "matmul" || head.epilogue.of !== "store") continue;
      const others = edits.readers(logits).length > 1;
      if (others || !canStorePartials(head.matrix, tuning)) continue;
      const epilogue = { of: "partials", choice, vocab } as const;
      const storing: OpOf<"matmul"> = { ...head, out: partials.out, epilogue };
      const prologue = fusedNorm(edits, storing, context) && PLAIN_ROWS;
      const { rows } = head.x;
      const count = matmulPartialCount(head.matrix, { rows, tuning, prologue });
      if (rows * count > most) continue;
      widen(partials.out, PARTIAL_WORDS[choice] * count);
      edits.replace(head, storing);
      edits.remove(partials);
    }
  },
};
