import { emitPair } from "../emit.ts";
import { onPaper } from "../lifetimes.ts";
import type { LoweredOp, OpOf } from "../ops.ts";
import type { Rewrite } from "../rewrite.ts";

/** Most rows of x. */
const MOST_ROWS = 8;

/** Two matmuls of the same few rows that store what they make go in one dispatch, in the place of the first. */
export const matmulPairs: Rewrite = {
  name: "matmul_pair",
  apply(edits, context) {
    const { software } = context.tuning;
    for (const first of software ? [] : edits.ops) {
      if (!isPlain(first) || edits.isChanged(first)) continue;
      const { x, label, part } = first;
      const second = edits.readers(x).find((op): op is OpOf<"matmul"> =>
        isPlain(op) && edits.isBefore(first, op) && !edits.isChanged(op) && op.x === x
      );
      if (!second) continue;
      const pair = { kind: "matmul_pair", first, second, label, part } as const;
      if (!emitPair({ context, at: onPaper, partials: new Map() }, pair)) continue;
      edits.replace(first, pair);
      edits.remove(second);
    }
  },
};

function isPlain(op: LoweredOp): op is OpOf<"matmul"> {
  return op.kind === "matmul" && op.x.rows <= MOST_ROWS && op.epilogue.of === "store" &&
    !op.hold && !op.forCells && !op.logits && op.out.at === undefined;
}
