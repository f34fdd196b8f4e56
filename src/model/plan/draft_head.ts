/** What a draft makes of its hidden rows: tokens, by its head. */
import { draftChoose, type NextLevel } from "../../../kernels/sample/draft_choose.ts";
import { slicePartialCount, slicePartials } from "../../../kernels/sample/slice_partials.ts";
import { matmul } from "../../../kernels/matmul/matmul.ts";
import { matmulPartialCount, matmulPartials } from "../../../kernels/matmul/matmul_partials.ts";
import { copyRows, gatherRows, scatterRows } from "../../../kernels/round/move_rows.ts";
import type { NormInput } from "../../../kernels/norm/rms_norm.ts";
import { topTokens } from "../../../kernels/tree/top.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import { takesPairs } from "../../../kernels/matmul/tensor/matmul_on_units.ts";
import type { BranchInput } from "./branch_input.ts";
import { norm } from "./decoder_context.ts";
import type { BatchSlots, Draft, TreeScratch } from "./draft_types.ts";

/** What a draft level stores: a token of each sequence, and the hidden row that the next level reads. */
export interface DraftEnd {
  readonly batch: number;
  readonly step: number;
  /** Row of `scratch.x` of each sequence, [batch]; absent: sequence b is row b. */
  readonly last?: Operand | undefined;
  /** Whether a further level follows, at once or in the next round. */
  readonly keepHidden: boolean;
  /** The hidden rows as `draftLevel` left them, where all are ends; absent: `scratch.x`. */
  readonly stream?: NormInput | undefined;
  /** Where that level's rows go, if it follows at once. */
  readonly next?: NextLevel | undefined;
}

/** Draft token `step` of each sequence, and the hidden row that the next level reads. */
export function draftHead(draft: Draft, { batchSlots }: BatchSlots, end: DraftEnd): Dispatch[] {
  const { weights, partials, choice: kind, drafts, mostRows, tuning } = draft;
  const { batch, step, next } = end;
  const label = `draft_choose.${step}`;
  const { plan: input, ...x } = ends(draft, batchSlots, end);
  const { plan, count } = headPartials(draft, x, { rows: batch, label });
  return [
    ...input,
    ...plan,
    draftChoose({ partials, offsets: weights.offsets, batchSlots, drafts, next }, {
      kind,
      batch,
      count,
      step,
      mostRows,
      label,
      lanes: tuning.rowLanes,
    }),
  ];
}

/**
 * The first tokens of each sequence's tree, and the first of them as draft token 0, where a chain
 * begins; otherwise as `draftHead` of step 0.
 */
export function firstTokens(
  draft: Draft,
  tree: TreeScratch,
  { batchSlots }: BatchSlots,
  { batch, last, stream }: Pick<DraftEnd, "batch" | "last" | "stream">,
): Dispatch[] {
  const { drafts, mostRows } = draft;
  const { plan, ...x } = ends(draft, batchSlots, { batch, last, stream, keepHidden: true });
  return [
    ...plan,
    ...headTop(draft, tree, x, {
      rows: batch,
      top: tree.width,
      out: tree.first,
      label: "draft_top.first",
      bySlot: { batchSlots, drafts, mostRows, confident: draft.choice === "softmax" },
    }),
  ];
}

/**
 * The most probable tokens after each row of a level of a tree, and their hidden rows.
 *
 * @param of.keepHidden whether a further forward follows.
 */
export function levelTokens(
  draft: Draft,
  tree: TreeScratch,
  of: {
    readonly rows: number;
    readonly width: number;
    readonly level: number;
    readonly keepHidden: boolean;
    /** As in `DraftEnd`. */
    readonly stream: NormInput;
  },
): Dispatch[] {
  const { rows, width: top, level, keepHidden, stream: from } = of;
  const { weights: { finalNorm, head }, scratch, config: { hiddenSize: cols } } = draft;
  const copy = (x: Operand) =>
    copyRows({ x, out: tree.hidden }, { rows, cols, label: "draft.keepHidden" });
  const { tuning, draft: { normOutput } } = draft;
  const keep = keepHidden && !normOutput ? { what: "input", out: tree.hidden } as const : undefined;
  const noted = finalNorm && scratch.scales;
  const paired = noted && !normOutput && takesPairs(head, { rows, bound: 0, tuning });
  const x = { x: finalNorm ? scratch.normed : scratch.x, xScales: noted?.normed, paired };
  const how = { from, out: x.x, keep, noted, put: paired ? "pair" : "store" } as const;
  return [
    ...finalNorm ? norm(draft, { ...how, weight: finalNorm }, rows, "draft.norm") : [],
    ...keepHidden && (normOutput || !finalNorm) ? [copy(x.x)] : [],
    ...headTop(draft, tree, x, { rows, top, out: tree.top, label: `draft_top.${level}` }),
  ];
}

/** The most probable tokens after the hidden rows x: their logits are stored and looked through. */
function headTop(
  { weights: { head: matrix, offsets }, draft: { draftVocabSize: vocab }, tuning }: Draft,
  { logits, partials }: TreeScratch,
  x: HeadRows,
  { rows, top, label, ...to }:
    & Pick<Parameters<typeof topTokens>[0], "out" | "bySlot">
    & { readonly rows: number; readonly top: number; readonly label: string },
): Dispatch[] {
  const shape = { rows, vocab, stride: matrix.rows, top, lanes: tuning.rowLanes, label };
  return [
    ...matmul(
      { matrix, ...x, out: logits },
      { rows, tuning, epilogue: "store", label: "draft.head" },
    ),
    ...topTokens({ logits, partials, offsets, ...to }, shape),
  ];
}

/** Partial results of the logits of x: by parts of the head's columns, or by slices of stored logits. */
function headPartials(
  { weights: { head: matrix }, draft: { draftVocabSize: vocab }, ...draft }: Draft,
  x: HeadRows,
  { rows, label }: { readonly rows: number; readonly label: string },
): { readonly plan: Dispatch[]; readonly count: number } {
  const { logits, partials, choice: kind, tuning } = draft;
  const use = { rows, tuning, label: "draft.head" };
  if (logits === undefined) {
    return {
      plan: matmulPartials({ matrix, x: x.x, partials }, { ...use, kind, vocab }),
      count: matmulPartialCount(matrix, use),
    };
  }
  const slices = { kind, rows, vocab, stride: matrix.rows, lanes: tuning.rowLanes, label };
  return {
    plan: [
      ...matmul({ matrix, ...x, out: logits }, { ...use, epilogue: "store" }),
      slicePartials({ logits, partials }, slices),
    ],
    count: slicePartialCount(vocab),
  };
}

/** Rows of `scratch.x` whose tokens are wanted. */
type Ends = Pick<DraftEnd, "batch" | "last" | "keepHidden" | "stream">;

/** What the head reads. */
type HeadRows = Pick<BranchInput, "x" | "xScales" | "paired">;

/** What the head reads of them, and what makes it. */
function ends(
  draft: Draft,
  batchSlots: Operand,
  of: Ends,
): HeadRows & { readonly plan: Dispatch[] } {
  const { weights: { finalNorm } } = draft;
  return finalNorm
    ? normedEnds(draft, batchSlots, of, finalNorm)
    : { x: of.last ? draft.ends.x : draft.scratch.x, plan: plainEnds(draft, batchSlots, of) };
}

/** EAGLE-3, NEXTN: normed = norm(x[last]); x[last], or normed by `normOutput`, into `hidden`. */
function normedEnds(
  draft: Draft,
  slot: Operand,
  { batch, last, keepHidden, stream }: Ends,
  weight: Operand,
): HeadRows & { readonly plan: Dispatch[] } {
  const { scratch: { x, normed: out, scales: noted }, weights: { head }, tuning } = draft;
  const from = last ? { x, index: last } : stream ?? { x };
  if (draft.draft.normOutput) {
    const { hiddenSize: cols } = draft.config;
    const kept = { x: out, index: slot, out: draft.hidden };
    const plan = [
      ...norm(draft, { from, weight, out, noted }, batch, "draft.norm"),
      ...keepHidden ? [scatterRows(kept, { rows: batch, cols, label: "draft.keepHidden" })] : [],
    ];
    return { x: out, xScales: noted?.normed, plan };
  }
  const keep = keepHidden ? { what: "slot", out: draft.hidden, slot } as const : undefined;
  const paired = noted && takesPairs(head, { rows: batch, bound: 0, tuning });
  const put = paired ? "pair" : "store";
  const plan = norm(draft, { from, weight, out, keep, noted, put }, batch, "draft.norm");
  return { x: out, xScales: noted?.normed, paired, plan };
}

/** EAGLE-1/2: ends = x[last], where row b is not sequence b, and into `hidden`. */
function plainEnds(
  { ends: { x: ends }, scratch: { x }, hidden: out, config: { hiddenSize: cols } }: Draft,
  batchSlots: Operand,
  { batch: rows, last, keepHidden }: Ends,
): Dispatch[] {
  const from = last ? ends : x;
  return [
    ...last ? [gatherRows({ x, index: last, out: ends }, { rows, cols, label: "draft.ends" })] : [],
    ...keepHidden
      ? [
        scatterRows({ x: from, index: batchSlots, out }, {
          rows,
          cols,
          label: "draft.keepHidden",
        }),
      ]
      : [],
  ];
}
