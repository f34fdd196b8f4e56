import { expertScales } from "../../../../kernels/experts/experts_on_units.ts";
import { tensorShards } from "../../../../kernels/matmul/tensor/common.ts";
import type { DecoderContext } from "../../graph/context.ts";
import type { Edits } from "../edits.ts";
import { emitFused } from "../emit.ts";
import { onPaper } from "../lifetimes.ts";
import { type LoweredOp, type OpOf, readsOf } from "../ops.ts";
import type { Rewrite } from "../rewrite.ts";
import { type HeldNorm, holding, normHeldBy } from "./norm_in_matmul.ts";

/** Most rows of x. */
const MOST_ROWS = 8;

/**
 * Most weights of a matmul that is fused with the router or experts. It takes the other launch's workgroup size, which
 * leaves a large matrix too few workgroups and saves little of its time. Gemma 4 26B-A4B's have 12 million.
 */
const MOST_WEIGHTS = 1 << 24;

/**
 * Operations of the same few rows that do not wait for each other go in one dispatch: two matmuls of the same x, in the
 * place of the first, and of their norm; and where a layer has an MLP and experts, the router, the choice of experts
 * and their first matmul, each with a matmul of that MLP, in the place of the latter.
 */
export const horizontalFusion: Rewrite = {
  name: "horizontal_fusion",
  apply(edits, context) {
    const moved = new Map<LoweredOp, number>();
    for (const op of context.tuning.software ? [] : edits.ops) {
      if (edits.isChanged(op)) continue;
      if (isPlain(op)) fuseMatmuls(edits, op, context);
      else if (isOfExperts(op)) fuseExperts(edits, op, { context, moved });
    }
  },
};

function fits(op: OpOf<"fused">, context: DecoderContext): boolean {
  return emitFused({ context, at: onPaper, partials: new Map() }, op) !== undefined;
}

function fuseMatmuls(edits: Edits, first: OpOf<"matmul">, context: DecoderContext): void {
  const { x, label, part } = first;
  const second = edits.readers(x).find((op): op is OpOf<"matmul"> =>
    isPlain(op) && edits.isBefore(first, op) && !edits.isChanged(op) && op.x === x
  );
  if (!second) return;
  const both = { kind: "fused", first, second, label, part } as const;
  const norm = normOf(edits, { first, second }, context);
  const normed = norm &&
    { ...both, first: holding(first, norm), second: holding(second, norm) };
  if (normed && fits(normed, context)) {
    edits.replace(norm, normed);
    edits.remove(first, second);
  } else if (fits(both, context)) {
    edits.replace(first, both);
    edits.remove(second);
  }
}

/**
 * The norm of the rows that both read, where each had better norm them itself: nothing is added to them, which one
 * would store.
 */
function normOf(
  edits: Edits,
  { first, second }: Readonly<Record<"first" | "second", OpOf<"matmul">>>,
  context: DecoderContext,
): HeldNorm | undefined {
  const norm = normHeldBy(edits, first, context, 2);
  if (norm?.from.of !== "rows" || norm.keep) return undefined;
  return normHeldBy(edits, second, context, 2) && norm;
}

/** What finds the experts of rows, and their first matmul. */
type OfExperts = OpOf<"normed_router"> | OpOf<"route"> | OpOf<"expert_matmul">;

function isOfExperts(op: LoweredOp): op is OfExperts {
  if (op.kind === "expert_matmul") return !op.perJob;
  return op.kind === "normed_router" || op.kind === "route";
}

function rowsOf(op: OfExperts): number {
  return op.kind === "expert_matmul" ? op.x.rows : op.logits.rows;
}

/** With the first of the matmuls right before it that is behind all that writes what it reads. */
function fuseExperts(
  edits: Edits,
  first: OfExperts,
  { context, moved }: {
    readonly context: DecoderContext;
    /** Places in the list of those that are fused already with a matmul before them. */
    readonly moved: Map<LoweredOp, number>;
  },
): void {
  const { tensor } = context.tuning;
  // Experts on matrix units have workgroups of one subgroup, which is few for another matmul.
  const onUnits = first.kind === "expert_matmul" && tensor && expertScales(first.matrix, tensor);
  if (rowsOf(first) > MOST_ROWS || onUnits) return;
  const writers = readsOf(first).flatMap((value) => edits.writers(value));
  const written = Math.max(...writers.map((op) => moved.get(op) ?? edits.placeOf(op)));
  const end = edits.placeOf(first);
  let begin = end;
  while (begin - 1 > written) {
    const before = edits.ops[begin - 1] as LoweredOp;
    if (!moved.has(before) && !isOfMlp(before)) break;
    begin--;
  }
  for (const [i, second] of edits.ops.slice(begin, end).entries()) {
    if (second.kind !== "matmul" || edits.isChanged(second)) continue;
    if (second.matrix.rows * second.matrix.cols > MOST_WEIGHTS) continue;
    // The scales that a router stores are in the place of those which a matmul between may still read.
    const between = edits.ops.slice(begin + i, end);
    const stores = first.kind === "normed_router" && first.notes;
    if (stores && between.some((op) => readsNormed(op, context))) continue;
    const both = { kind: "fused", first, second, label: first.label, part: first.part } as const;
    if (!fits(both, context)) continue;
    edits.replace(second, both);
    edits.remove(first);
    moved.set(first, edits.placeOf(second));
    return;
  }
}

/** Whether a matmul is of matrix units, which read the scales of the rows that a norm wrote. */
function readsNormed(op: LoweredOp, { tuning: { tensor } }: DecoderContext): boolean {
  return op.kind === "matmul" && op.xScales === "normed" && op.onUnits &&
    tensorShards(op.matrix, tensor) !== undefined;
}

/**
 * A matmul of an MLP that neither reads scales of its gate's output nor lowers them, which a router makes the largest.
 */
function isOfMlp(op: LoweredOp): boolean {
  if (op.kind !== "matmul" || op.hold || op.forCells || op.xScales === "act") return false;
  const { epilogue } = op;
  return epilogue.of === "store" || epilogue.of === "gate" && !epilogue.notes;
}

function isPlain(op: LoweredOp): op is OpOf<"matmul"> {
  return op.kind === "matmul" && op.x.rows <= MOST_ROWS && op.epilogue.of === "store" &&
    !op.hold && !op.forCells && !op.logits && op.out.at === undefined;
}
