import type { DecoderContext } from "../../graph/context.ts";
import type { Edits } from "../edits.ts";
import { emitPair } from "../emit.ts";
import { onPaper } from "../lifetimes.ts";
import type { LoweredOp, OpOf } from "../ops.ts";
import type { Rewrite } from "../rewrite.ts";
import { type HeldNorm, holding, normHeldBy } from "./norm_in_matmul.ts";

/** Most rows of x. */
const MOST_ROWS = 8;

/** Two matmuls of the same few rows that store what they make go in one dispatch, in the place of the first, and of their norm. */
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
      const fits = (pair: OpOf<"matmul_pair">) =>
        emitPair({ context, at: onPaper, partials: new Map() }, pair) !== undefined;
      const norm = normOf(edits, pair, context);
      const normed = norm &&
        { ...pair, first: holding(first, norm), second: holding(second, norm) };
      if (normed && fits(normed)) {
        edits.replace(norm, normed);
        edits.remove(first, second);
      } else if (fits(pair)) {
        edits.replace(first, pair);
        edits.remove(second);
      }
    }
  },
};

/** The norm of the rows that both read, where each had better norm them itself: nothing is added to them, which one would store. */
function normOf(
  edits: Edits,
  { first, second }: OpOf<"matmul_pair">,
  context: DecoderContext,
): HeldNorm | undefined {
  const norm = normHeldBy(edits, first, context, 2);
  if (norm?.from.of !== "rows" || norm.keep) return undefined;
  return normHeldBy(edits, second, context, 2) && norm;
}

function isPlain(op: LoweredOp): op is OpOf<"matmul"> {
  return op.kind === "matmul" && op.x.rows <= MOST_ROWS && op.epilogue.of === "store" &&
    !op.hold && !op.forCells && !op.logits && op.out.at === undefined;
}
