/** Attention over heads of keys and values: all but DeepSeek's. */
import {
  MOST_OWN_CELLS,
  type OwnHeads,
  ownsHeads,
  type RelayedHeads,
} from "../../../kernels/attention/own_heads.ts";
import { relayedHeads, relaysHeads } from "../../../kernels/attention/relayed_heads.ts";
import { attend, attendNotes, unitsOf } from "../../../kernels/attention/units/attend.ts";
import { SPLIT_CELLS, splitsOf } from "../../../kernels/attention/attention_kernels.ts";
import {
  combinedHeads,
  MOST_SPLITS,
  normedRows,
  PLAIN_ROWS,
} from "../../../kernels/matmul/hold/hold.ts";
import { tensorShards } from "../../../kernels/matmul/tensor/common.ts";
import { combinesHeads } from "../../../kernels/matmul/hold/norms_rows.ts";
import { qkvEpilogue } from "../../../kernels/matmul/qkv.ts";
import { splitKOf } from "../../../kernels/matmul/matmul_shape.ts";
import { placeHeads } from "../../../kernels/attention/place_heads.ts";
import { normRopeStore } from "../../../kernels/attention/norm_rope_store.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import { isQuantized, type Matrix } from "../../gpu/matrix.ts";
import {
  type Branch,
  branchEnd,
  type DecoderContext,
  type LayerKv,
  type LayerSource,
  type RowsOf,
  scalesOf,
} from "./decoder_context.ts";
import { type BranchInput, project } from "./branch_input.ts";
import { PAGE } from "./device_layout.ts";
import { type HeadAttention, headsOf } from "../config/layer_config.ts";
import type { Rope } from "../config/rope_config.ts";
import { WIDE_INPUT } from "./sums_width.ts";

export interface HeadWeights {
  readonly kind: "heads";
  readonly spec: HeadAttention;
  /**
   * [q; k; v], [(heads + 2 kvHeads) headDim, width of the layer's input]; the rows are in order
   * with `qkNorm`, else the loader's `heads`.
   */
  readonly qkv: Matrix;
  /** Of q, k and v, [(heads + 2 kvHeads) headDim]. */
  readonly bias: Operand | undefined;
  /** Norms of q and k: [2, headDim] over each head, [heads + kvHeads, headDim] over all of them. */
  readonly qkNorm: Operand | undefined;
  /** [hidden, heads headDim] */
  readonly o: Matrix;
}

/** @param ropes of the model. */
export function loadHeadAttention(
  { load, label, tensor, normOffset }: LayerSource,
  spec: HeadAttention,
  ropes: readonly Rope[],
): HeadWeights {
  const { qkNorm, bias, headDim } = spec;
  const { width } = ropes[spec.rope] as Rope;
  const qkv = { turned: [tensor("q"), tensor("k")], plain: [tensor("v")] };
  return {
    kind: "heads",
    spec,
    qkv: qkNorm === "none"
      ? load.heads(`${label}.qkv`, qkv, { headDim, width })
      : load.matrix(`${label}.qkv`, [...qkv.turned, ...qkv.plain]),
    bias: bias
      ? load.vector(`${label}.qkvBias`, ...["qBias", "kBias", "vBias"].map(tensor))
      : undefined,
    qkNorm: qkNorm === "none"
      ? undefined
      : load.norm(`${label}.qkNorm`, normOffset, tensor("qNorm"), tensor("kNorm")),
    o: load.matrix(`${label}.o`, [tensor("o")]),
  };
}

/** A layer's weights with its keys and values. */
export interface Kept {
  readonly weights: HeadWeights;
  readonly kv: LayerKv;
  readonly label: string;
}

/**
 * sums = o(attention(q, k, v of `input`)).
 *
 * @param how.stored whether q is there, and the keys and values are stored, as `projectHeads` leaves them.
 */
export function headAttention(
  context: DecoderContext,
  kept: Kept,
  { input, of, stored: there = false }: {
    readonly input: BranchInput;
    readonly of: RowsOf;
    readonly stored?: boolean;
  },
): Branch {
  const { tuning, scratch: { q, partial, attentionOutput }, pages } = context;
  const { kv: { keys, values }, label, weights: { o, spec } } = kept;
  const { scale, cap, window } = spec;
  const { rows, count, perSlot, paths = false } = of;
  const heads = { ...headsOf(spec, context), scale, cap, window };
  const end = { rows: count, end: "sums", label: `${label}.o` } as const;
  const onUnits = unitsOf(heads, tuning) !== undefined;
  const scales = input.xScales && attendNotes(heads, tuning)
    // The sums of many rows are added by workgroups of a row.
    ? scalesOf(context, "attentionOutput", count, onUnits ? undefined : Infinity)
    : undefined;
  const io = { matrix: o, x: attentionOutput, xScales: scales };
  const out = branchEnd(context, io, end);
  const launch = { ...heads, count, perSlot, paths, tuning };
  const buffers = { q, keys, values, rows, pages, partial, out: attentionOutput, scales };
  const attended = attend(buffers, { ...launch, label: `${label}.attention` });
  const projected = there ? [] : projectHeads(context, kept, input, of);
  // Sums of matrix units are merged as no other kernel does.
  if (onUnits) return { ...out, plan: [...projected, ...attended, ...out.plan] };
  const [scores, ...combined] = attended;
  const normed = kept.weights.qkNorm !== undefined;
  const own = !there && ownsHeads({ ...launch, normed }) ? ownHeads(context, kept) : undefined;
  const stored = [...projected, ...scores ? [scores] : []];
  const scored = (own: OwnHeads) =>
    attend({ ...buffers, own }, { ...launch, label: `${label}.attention` })[0] as Dispatch;
  const relayed = own && relayedOwn(context, kept, input, (relay) => scored({ ...own, relay }));
  const cells = Math.min(heads.tablePages * PAGE, window ?? Infinity);
  const plan = relayed ? fewCells([relayed], stored, cells) : own
    ? ownPlan(stored, [scored(own)], {
      raw: projectRaw(context, kept, input, count),
      shared: normed,
      cells,
    })
    : stored;
  const { splitK } = out;
  const use = { rows: count, splitK, tuning };
  const wide = !combinesHeads(o, use);
  if (combined.length !== 1 || !combinesHeads(o, { ...use, wide })) {
    return { ...out, plan: [...plan, ...combined, ...out.plan] };
  }
  // Where slots have few cells, `o` adds the splits of attention itself.
  const hold = combinedHeads({ ...partial, rows, ...heads, splits: splitsOf(heads) }, wide);
  const most = MOST_SPLITS * SPLIT_CELLS;
  const apart = [...combined, ...out.plan].map((each) => ({
    ...each,
    forCells: { from: most + 1, upTo: Infinity },
  }));
  const together = branchEnd(context, { ...io, hold }, end).plan
    .map((each) => ({ ...each, forCells: { from: 0, upTo: most } }));
  const last = { matrix: o, x: attentionOutput, hold, splitK, cells: most, apart: together };
  return { ...out, plan: [...plan, ...together, ...apart], ...count === 1 && { last } };
}

/** `few` where a row sees few cells, and else `many`. @param cells most that a row sees. */
function fewCells(few: Dispatch[], many: Dispatch[], cells: number): Dispatch[] {
  if (cells <= MOST_OWN_CELLS) return few;
  const within = (plan: Dispatch[], from: number, upTo: number) =>
    plan.map((each) => ({ ...each, forCells: { from, upTo } }));
  return [...within(few, 0, MOST_OWN_CELLS), ...within(many, MOST_OWN_CELLS + 1, Infinity)];
}

/**
 * Heads placed by attention where cells are few, and else before it.
 *
 * @param stored q, k, v, normed, turned and stored, and the scores of them.
 * @param own scores that place heads themselves.
 * @param of.raw q, k, v as the matmul leaves them.
 * @param of.shared whether `stored` begins with `raw`.
 * @param of.cells most that a row sees.
 */
function ownPlan(
  stored: Dispatch[],
  own: Dispatch[],
  { raw, shared, cells }: {
    readonly raw: Dispatch[];
    readonly shared: boolean;
    readonly cells: number;
  },
): Dispatch[] {
  return shared
    ? [...raw, ...fewCells(own, stored.slice(raw.length), cells)]
    : fewCells([...raw, ...own], stored, cells);
}

/** Scores that place the heads of one row themselves, in a dispatch with the matmul that makes them. */
function relayedOwn(
  { tuning, scratch: { relay } }: DecoderContext,
  { label, weights: { qkv: matrix } }: Kept,
  { x, norm }: BranchInput,
  scores: (from: RelayedHeads) => Dispatch,
): Dispatch | undefined {
  const hold = norm ? normedRows(norm, { cols: matrix.cols, rows: 1 }) : PLAIN_ROWS;
  if (!relay || !relaysHeads(matrix, hold, tuning)) return undefined;
  const words = { matrix, x, words: relay.heads };
  return relayedHeads(words, { hold, tuning, label: `${label}.attention` }, scores);
}

/**
 * What attention places itself: q and k of heads that are normed each or not at all. One binding has all of the
 * matrix of those that are not, and no matrix units multiply by it: there the epilogue that places them is as fast.
 */
function ownHeads(
  { config, scratch: { qkv }, ropes, tuning: { tensor } }: DecoderContext,
  { weights: { qkNorm: weight, bias, spec, qkv: matrix } }: Kept,
): OwnHeads | undefined {
  if (spec.qkNorm === "whole") return undefined;
  const rope = ropes[spec.rope] as Operand;
  if (weight) return { qkv, norm: { weight, eps: config.rmsNormEps }, rope };
  const alone = matrix.shards.length === 1 && !bias && !tensorShards(matrix, tensor);
  return alone ? { qkv, rope } : undefined;
}

/** q, k, v of `input` as the matmul leaves them. */
function projectRaw(
  context: DecoderContext,
  { label, weights: { qkv: matrix } }: Kept,
  input: BranchInput,
  rows: number,
): Dispatch[] {
  const to = { matrix, out: context.scratch.qkv };
  return project(context, input, to, { rows, epilogue: "store", label: `${label}.qkv` });
}

/**
 * Ranges of k of heads that are not normed: above 1 on matrix units, which are not filled by so few outputs of a wide
 * input otherwise. Part of the order of the sums, so it is one number for every row count.
 */
export function headRanges(
  { qkv: matrix, bias, qkNorm }: Pick<HeadWeights, "qkv" | "bias" | "qkNorm">,
  tuning: DecoderContext["tuning"],
): number {
  const { format, cols, shards } = matrix;
  const plain = !bias && !qkNorm && shards.length === 1 && !isQuantized(format);
  const wide = plain && cols >= WIDE_INPUT && tensorShards(matrix, tuning.tensor);
  return wide ? splitKOf(matrix, tuning) : 1;
}

/** q, k, v of `input`: q and k normed where the model does, and rotated; k and v stored. */
export function projectHeads(
  context: DecoderContext,
  kept: Kept,
  input: BranchInput,
  { rows, count }: RowsOf,
): Dispatch[] {
  const { kv, label, weights: { qkv: matrix, bias, qkNorm: weight, spec } } = kept;
  const { config, tuning, scratch: { q, qkv }, ropes, pages } = context;
  const place = { rope: ropes[spec.rope] as Operand, rows, pages, ...kv };
  const shape = { ...headsOf(spec, context), count };
  const launch = { rows: count, label: `${label}.qkv` };
  const splitK = headRanges(kept.weights, tuning);
  if (splitK > 1) {
    const { sums } = context.scratch;
    return [
      ...project(context, input, { matrix, out: sums }, { ...launch, epilogue: "store", splitK }),
      placeHeads({ ...place, sums, q }, { ...shape, splitK, label: `${label}.place` }),
    ];
  }
  if (!weight) {
    const epilogue = qkvEpilogue({ ...place, bias }, shape);
    return project(context, input, { matrix, out: q }, { ...launch, epilogue });
  }
  const norm = { eps: config.rmsNormEps, whole: spec.qkNorm === "whole" };
  return [
    ...projectRaw(context, kept, input, count),
    normRopeStore(
      { ...place, qkv, weight, q },
      { ...shape, ...norm, tuning, label: `${label}.normRope` },
    ),
  ];
}
