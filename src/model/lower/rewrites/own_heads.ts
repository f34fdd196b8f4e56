import { MAX_OWN_CELLS, ownsHeads } from "../../../../kernels/attention/attention_row.ts";
import { tensorShards } from "../../../../kernels/matmul/tensor/common.ts";
import type { DecoderContext } from "../../graph/context.ts";
import { type StoreHeads, type Value, value } from "../../graph/graph.ts";
import { PAGE } from "../../device_layout.ts";
import { attendsOnUnits } from "../emit/attention.ts";
import type { LoweredOp, OpOf } from "../ops.ts";
import type { Rewrite } from "../rewrite.ts";

/** For one row and few cells attention itself norms, rotates and stores q, k and v. */
export const ownHeads: Rewrite = {
  name: "own_heads",
  apply(edits, context) {
    for (const attention of edits.ops) {
      if (attention.kind !== "attention" || attention.stage === "combine") continue;
      const { heads, of: { count, paths = false }, window } = attention;
      const [made] = edits.writers(attention.q);
      if (!made || edits.writers(attention.q).length > 1) continue;
      const own = ownOf(made, context);
      if (!own || attendsOnUnits(attention, context)) continue;
      const normed = own.store.norm !== undefined;
      if (!ownsHeads({ ...heads, count, paths, normed, tuning: context.tuning })) continue;
      const scores: OpOf<"attention"> = { ...attention, stage: "scores" };
      const placing: OpOf<"attention"> = { ...scores, own: { qkv: own.qkv, store: own.store } };
      const cells = Math.min(heads.tablePages * PAGE, window ?? Infinity);
      const few = cells > MAX_OWN_CELLS ? { from: 0, upTo: MAX_OWN_CELLS } : undefined;
      const many = { from: MAX_OWN_CELLS + 1, upTo: Infinity };
      const apart = few ? [withCells(made, many)] : [];
      edits.replace(made, ...own.raw ? [withCells(own.raw, few)] : [], ...apart);
      const combine: LoweredOp[] = attention.stage === "all"
        ? [{ ...attention, stage: "combine" }]
        : [];
      const scored = few ? [withCells(scores, many)] : [];
      edits.replace(attention, withCells(placing, few), ...scored, ...combine);
    }
  },
};

function withCells<Of extends LoweredOp>(op: Of, forCells: LoweredOp["forCells"]): Of {
  return forCells ? { ...op, forCells } : op;
}

interface Own {
  readonly qkv: Value;
  readonly store: StoreHeads;
  /** The matmul that stores q, k and v unrotated; undefined if `made` reads them from a value anyway. */
  readonly raw: OpOf<"matmul"> | undefined;
}

/**
 * Returns the q, k and v that attention can place itself: heads are normed one by one, or not at all. If they are not
 * normed, their matrix must be one shard and not run on matrix units, where the epilogue that places them is as fast.
 */
function ownOf(made: LoweredOp, { tuning: { tensor } }: DecoderContext): Own | undefined {
  if (made.kind === "store_heads") {
    const { qkv, norm } = made;
    if (!norm || norm.whole) return undefined;
    return norm.values !== "none" ? { qkv, store: made, raw: undefined } : undefined;
  }
  if (made.kind !== "matmul" || made.epilogue.of !== "heads") return undefined;
  const { matrix, epilogue: { bias, store } } = made;
  if (matrix.shards.length > 1 || bias || tensorShards(matrix, tensor)) return undefined;
  const qkv = value(made.label, made.x.rows, matrix.rows);
  const raw: OpOf<"matmul"> = { ...made, out: qkv, epilogue: { of: "store" } };
  return {
    qkv,
    store: { ...store, kind: "store_heads", qkv, norm: undefined, out: made.out },
    raw,
  };
}
