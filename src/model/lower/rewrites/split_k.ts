import { splitKOf } from "../../../../kernels/matmul/matmul_shape.ts";
import { tensorShards } from "../../../../kernels/matmul/tensor/common.ts";
import { isQuantized } from "../../../gpu/weight_format.ts";
import type { DecoderContext } from "../../graph/context.ts";
import type { Value } from "../../graph/graph.ts";
import type { Edits } from "../edits.ts";
import { type LoweredOp, type OpOf, substituted } from "../ops.ts";
import type { Rewrite } from "../rewrite.ts";

/**
 * Fewest input columns of q, k and v for which split-K saves more than the dispatch that adds the partial sums costs.
 * At 4,096 columns rounds of many rows gain 1 % of a layer and one row loses as much (docs/kernels/rounds.md).
 */
const WIDE_INPUT = 8192;

/** Epilogues that a split-K matmul can have. */
const SPLIT: ReadonlySet<string> = new Set(["store", "scale", "bias"]);

/**
 * Matmuls into the residual stream, and on matrix units those of q, k and v with wide inputs, use split-K. This changes
 * bits: `splitKOf` decides the order of a sum, for every number of rows.
 */
export const splitK: Rewrite = {
  name: "split_k",
  changesBits: true,
  apply(edits, context) {
    const parts = new Map<Value, Value>();
    for (const op of edits.ops) {
      if (op.kind !== "matmul" || op.out.at || op.logits) continue;
      if (!SPLIT.has(op.epilogue.of)) continue;
      const chain = intoStream(edits, op, context) ?? intoHeads(edits, op, context) ?? [];
      const count = splitKOf(op.matrix, context.tuning);
      if (count === 1) continue;
      for (const value of chain) parts.set(value, { ...value, parts: count });
    }
    const changed = [...parts.keys()].flatMap((value) => [
      ...edits.writers(value),
      ...edits.readers(value),
    ]);
    for (const op of changed) edits.replace(op, withParts(op, parts));
  },
};

/** The output and the values stored in its buffer, if a norm reads them or the residual stream they are added to. */
function intoStream(
  edits: Edits,
  { out }: OpOf<"matmul">,
  { config: { hiddenSize } }: DecoderContext,
): Value[] | undefined {
  if (out.cols !== hiddenSize) return undefined;
  const chain = [out];
  let value = out;
  let reader = edits.soleReader(value);
  while (reader?.kind === "combine" && reader.to === value) {
    value = reader.out;
    chain.push(value);
    reader = edits.soleReader(value);
  }
  if (reader?.kind === "norm" && isRows(reader)) return chain;
  if (reader?.kind !== "add" || reader.y !== value) return undefined;
  return edits.readers(reader.out).some((op) => op.kind === "norm" && isRows(op))
    ? chain
    : undefined;
}

function isRows({ from }: OpOf<"norm">): boolean {
  return from.of === "rows" && from.index === undefined;
}

function intoHeads(
  edits: Edits,
  { out, matrix }: OpOf<"matmul">,
  { tuning }: DecoderContext,
): Value[] | undefined {
  const reader = edits.soleReader(out);
  if (reader?.kind !== "store_heads" || reader.norm) return undefined;
  const { format, cols, shards } = matrix;
  const wide = cols >= WIDE_INPUT && shards.length === 1 && !isQuantized(format);
  return wide && tensorShards(matrix, tuning.tensor) ? [out] : undefined;
}

/** Replaces values by those with several parts; a norm that reads one adds its parts. */
function withParts(op: LoweredOp, parts: ReadonlyMap<Value, Value>): LoweredOp {
  if (op.kind === "norm" && op.from.of === "rows") {
    const y = parts.get(op.from.x);
    if (y) return { ...op, from: { of: "sums", x: undefined, y, stream: undefined } };
  }
  return substituted(op, parts);
}
