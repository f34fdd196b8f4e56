import { expertScales } from "../../../../kernels/experts/experts_on_units.ts";
import { tensorShards } from "../../../../kernels/matmul/tensor/common.ts";
import type { DecoderContext } from "../../graph/context.ts";
import type { Edits } from "../edits.ts";
import { emitFused } from "../emit.ts";
import { onPaper } from "../lifetimes.ts";
import { type FusedNorm, fusedNorm, fuseNorm } from "../norms.ts";
import { type LoweredOp, type OpOf, readsOf } from "../ops.ts";
import type { Rewrite } from "../rewrite.ts";

/** Most rows of x. */
const MAX_ROWS = 8;

/**
 * Most weights of a matmul that is fused with the router or experts. It gets the other launch's workgroup size, which
 * leaves a large matrix too few workgroups, and saving a dispatch is little of its time. Those of Gemma 4 26B-A4B have
 * 12 million weights.
 */
const MAX_WEIGHTS = 1 << 24;

/**
 * Independent operations of the same few rows share one dispatch. Two matmuls of the same x run in the place of the
 * first, or of their norm if both norm x themselves. If a layer has an MLP and experts, then the router, the choice of
 * experts and the experts' first matmul are each fused with a matmul of the MLP and run in its place.
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
  const fused = normOf(edits, { first, second }, context);
  const normed = fused && {
    ...both,
    first: fuseNorm(first, fused, false),
    second: fuseNorm(second, fused),
  };
  if (normed && fits(normed, context)) {
    edits.replace(fused.norm, normed);
    edits.remove(first, second);
  } else if (fits(both, context)) {
    edits.replace(first, both);
    edits.remove(second);
  }
}

/** The norm of the rows that both matmuls read, if it is faster that each norms them, in workgroups of one size. */
function normOf(
  edits: Edits,
  { first, second }: Readonly<Record<"first" | "second", OpOf<"matmul">>>,
  context: DecoderContext,
): FusedNorm | undefined {
  const [one, two] = [first, second].map((matmul) => fusedNorm(edits, matmul, context, 2));
  if (!one || !two || one.norm.keep) return undefined;
  return { ...one, widen: Math.max(one.widen, two.widen) };
}

/** The operations that choose experts, and the experts' first matmul. */
type OfExperts = OpOf<"normed_router"> | OpOf<"route"> | OpOf<"expert_matmul">;

function isOfExperts(op: LoweredOp): op is OfExperts {
  if (op.kind === "expert_matmul") return !op.perJob;
  return op.kind === "normed_router" || op.kind === "route";
}

function rowsOf(op: OfExperts): number {
  return op.kind === "expert_matmul" ? op.x.rows : op.logits.rows;
}

/** Fuses `first` with the earliest matmul before it that comes after all writers of the values that `first` reads. */
function fuseExperts(
  edits: Edits,
  first: OfExperts,
  { context, moved }: {
    readonly context: DecoderContext;
    /** The new places in the list of operations that were fused with an earlier matmul. */
    readonly moved: Map<LoweredOp, number>;
  },
): void {
  const { tensor } = context.tuning;
  // Experts on matrix units have workgroups of one subgroup, which is few for another matmul.
  const onUnits = first.kind === "expert_matmul" && tensor && expertScales(first.matrix, tensor);
  if (rowsOf(first) > MAX_ROWS || onUnits) return;
  const writers = readsOf(first).flatMap((value) => edits.writers(value));
  const written = Math.max(...writers.map((op) => moved.get(op) ?? edits.indexOf(op)));
  const end = edits.indexOf(first);
  let begin = end;
  while (begin - 1 > written) {
    const before = edits.ops[begin - 1] as LoweredOp;
    if (!moved.has(before) && !isOfMlp(before)) break;
    begin--;
  }
  for (const [i, second] of edits.ops.slice(begin, end).entries()) {
    if (second.kind !== "matmul" || edits.isChanged(second)) continue;
    if (second.matrix.rows * second.matrix.cols > MAX_WEIGHTS) continue;
    // The router's scales overwrite the normed rows' scales, which a matmul in between may still read.
    const between = edits.ops.slice(begin + i, end);
    const stores = first.kind === "normed_router" && first.storesScales;
    if (stores && between.some((op) => readsNormed(op, context))) continue;
    const both = { kind: "fused", first, second, label: first.label, part: first.part } as const;
    if (!fits(both, context)) continue;
    edits.replace(second, both);
    edits.remove(first);
    moved.set(first, edits.indexOf(second));
    return;
  }
}

/** Whether an operation is a matmul on matrix units that reads the row scales stored by a norm. */
function readsNormed(op: LoweredOp, { tuning: { tensor } }: DecoderContext): boolean {
  return op.kind === "matmul" && op.xScales === "normed" && op.onUnits &&
    tensorShards(op.matrix, tensor) !== undefined;
}

/**
 * Whether an operation is a matmul of an MLP that neither reads nor reduces the scales of gated activations: the router
 * resets these to the largest value.
 */
function isOfMlp(op: LoweredOp): boolean {
  if (op.kind !== "matmul" || op.prologue || op.forCells || op.xScales === "act") return false;
  const { epilogue } = op;
  return epilogue.of === "store" || epilogue.of === "gate" && !epilogue.storesScales;
}

function isPlain(op: LoweredOp): op is OpOf<"matmul"> {
  return op.kind === "matmul" && op.x.rows <= MAX_ROWS && op.epilogue.of === "store" &&
    !op.prologue && !op.forCells && !op.logits && op.out.at === undefined;
}
