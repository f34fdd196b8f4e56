/** What an EAGLE head makes of a token and a hidden row before its decoder layer. */
import { embed } from "../../../kernels/norm/embed.ts";
import { matmul } from "../../../kernels/matmul/matmul.ts";
import { copyRows, fillRows, gatherRows } from "../../../kernels/round/move_rows.ts";
import { splitKOf } from "../../../kernels/matmul/matmul_shape.ts";
import { normPair, pairNotes, pairsNorms } from "../../../kernels/norm/norm_pair.ts";
import { type NormInput, rmsNorm } from "../../../kernels/norm/rms_norm.ts";
import { takesPairs } from "../../../kernels/matmul/tensor/matmul_on_units.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import type { Tuning } from "../../gpu/matrix.ts";
import type { BranchInput } from "./branch_input.ts";
import { firstOfAttention } from "./decoder.ts";
import { norm, type RowsOf } from "./decoder_context.ts";
import type { Draft, DraftWeights, Features, HiddenRows } from "./draft_types.ts";

/** What makes the input of a draft's attention, and what is known of its rows. */
export interface EnteredRows extends Pick<BranchInput, "xScales" | "paired"> {
  readonly plan: Dispatch[];
}

/** The hidden rows that an EAGLE-3 head begins with. */
interface MadeRows {
  readonly plan: Dispatch[];
  readonly h:
    | { readonly x: Operand; readonly index?: Operand }
    | Extract<NormInput, { readonly splitK: number }>;
}

/**
 * EAGLE-3: fcInput = [inputNorm(embedding), hiddenNorm(h)] with h = fc(aux hidden states), or the
 * draft's own hidden row; x = h, or hiddenNorm(h) where the checkpoint norms before the residual.
 */
export function eagle3Input(draft: Draft, of: RowsOf, from: Features | HiddenRows): EnteredRows {
  const { weights, fcInput, scratch: { x }, config: { hiddenSize } } = draft;
  const { input, hidden } = weights.norms as NonNullable<DraftWeights["norms"]>;
  const { rows, count } = of;
  const half = { out: fcInput, outCols: 2 * hiddenSize };
  const made: MadeRows = "features" in from
    ? fcOfFeatures(draft, from, count)
    : { plan: [], h: { x: from.hidden, index: from.index } };
  const keep = { what: draft.draft.normBeforeResidual ? "output" : "input", out: x } as const;
  const { embed: matrix } = weights;
  if (pairsNorms(matrix)) {
    const { config: { rmsNormEps: eps }, tuning, scratch: { scales } } = draft;
    const noted = tuning.tensor && pairNotes(tuning.tensor.limits) ? scales : undefined;
    const first = firstOfAttention(weights.layer);
    const paired = noted && first &&
      takesPairs(first.matrix, { rows: count, bound: first.bound, tuning });
    const h = "sums" in made.h ? { x: made.h.sums, splitK: made.h.splitK } : made.h;
    const [token, row] = [{ matrix, rows, weight: input }, { ...h, weight: hidden }];
    const both = { token, hidden: row, out: fcInput, kept: keep, noted, paired };
    const lanes = tuning.rowLanes;
    const shape = { rows: count, cols: hiddenSize, eps, lanes, label: "draft.inputNorms" };
    return { plan: [...made.plan, normPair(both, shape)], xScales: noted?.normed, paired };
  }
  const embedding = { from: { matrix, rows }, weight: input, ...half };
  const features = { from: made.h, weight: hidden, ...half, outFirst: hiddenSize, keep };
  return {
    plan: [
      ...norm(draft, embedding, count, "draft.inputNorm"),
      ...made.plan,
      ...norm(draft, features, count, "draft.hiddenNorm"),
    ],
  };
}

/** EAGLE-1/2: x = fc([embedding, hidden]). */
export function eagle1Input(draft: Draft, of: RowsOf, from: Features | HiddenRows): EnteredRows {
  const { weights, fcInput, scratch, config: { hiddenSize: cols } } = draft;
  if (weights.inputNorms.length > 0) return { plan: hassInput(draft, of, from) };
  const { rows, count } = of;
  const second = { rows: count, cols, outCols: 2 * cols, outFirst: cols, label: "draft.hidden" };
  const plan = [
    ...embed(
      { matrix: weights.embed, rows, out: fcInput },
      { count, outCols: 2 * cols, label: "draft.embed" },
    ),
    "features" in from
      ? copyRows({ x: from.features, out: fcInput }, second)
      : gatherRows({ x: from.hidden, index: from.index, out: fcInput }, second),
    ...fc(draft, { x: fcInput, out: scratch.x }, count),
  ];
  return { plan };
}

/** EAGLE-1/2 of HASS: x = fc([norm(embedding), norm(hidden)]). */
function hassInput(draft: Draft, { rows, count }: RowsOf, from: Features | HiddenRows): Dispatch[] {
  const { weights, fcInput, scratch, config: { hiddenSize } } = draft;
  const [first, second] = weights.inputNorms as [Operand, Operand];
  const half = { out: fcInput, outCols: 2 * hiddenSize };
  const embedding = { from: { matrix: weights.embed, rows }, weight: first, ...half };
  const h = "features" in from ? { x: from.features } : { x: from.hidden, index: from.index };
  const hidden = { from: h, weight: second, ...half, outFirst: hiddenSize };
  return [
    ...norm(draft, embedding, count, "draft.inputNorm"),
    ...norm(draft, hidden, count, "draft.hiddenNorm"),
    ...fc(draft, { x: fcInput, out: scratch.x }, count),
  ];
}

/** NEXTN: x as HASS has it, and normed = norm(x), as a decoder layer is entered. */
export function nextnInput(draft: Draft, of: RowsOf, from: Features | HiddenRows): EnteredRows {
  const { weights, scratch: { normed: out, scales: noted } } = draft;
  const weight = weights.layerNorm as Operand;
  return {
    plan: [
      ...hassInput(draft, of, from),
      ...norm(draft, { weight, out, noted }, of.count, "draft.layerNorm"),
    ],
    xScales: noted?.normed,
  };
}

/** h = fc(aux hidden states), normed together or each alone where the checkpoint has it so. */
function fcOfFeatures(
  draft: Draft,
  { features }: Features,
  rows: number,
): MadeRows {
  const { weights: { inputNorms, fc: { cols: all } }, normedFeatures, tuning, config } = draft;
  if (normedFeatures === undefined) return fcSums(draft, features, rows);
  const { out, auxHidden } = normedFeatures;
  const cols = all / inputNorms.length;
  const each = inputNorms.flatMap((weight, i) => {
    const index = inputNorms.length > 1 ? auxHidden[i] : undefined;
    return rmsNorm({ from: { x: features, ...index ? { index } : {} }, weight, out }, {
      rows,
      cols,
      eps: config.rmsNormEps,
      lanes: tuning.rowLanes,
      outCols: all,
      outFirst: i * cols,
      label: "draft.featureNorm",
    });
  });
  const { plan, h } = fcSums(draft, out, rows);
  return { plan: [...each, ...plan], h };
}

/** h = fc(x) + bias as the norm behind it reads it. */
function fcSums(
  draft: Draft,
  x: Operand,
  rows: number,
): MadeRows {
  const { weights, tuning, scratch: { normed, sums } } = draft;
  const splitK = fcRanges(weights, tuning);
  if (splitK === 1) return { plan: fc(draft, { x, out: normed }, rows), h: { x: normed } };
  const launch = { rows, epilogue: "store", splitK, tuning, label: "draft.fc" } as const;
  return { plan: matmul({ matrix: weights.fc, x, out: sums }, launch), h: { sums, splitK } };
}

/** Ranges of k of `fc`: where a norm follows, it adds their sums, as behind a layer's last matmul. */
export function fcRanges(
  { norms, fcBias, fc }: Pick<DraftWeights, "norms" | "fcBias" | "fc">,
  tuning: Tuning,
): number {
  return norms && !fcBias ? splitKOf(fc, tuning) : 1;
}

/** out = fc(x) + bias. */
function fc(
  { weights, tuning, config: { hiddenSize: cols } }: Draft,
  { x, out }: { readonly x: Operand; readonly out: Operand },
  rows: number,
): Dispatch[] {
  const { fc: matrix, fcBias: values } = weights;
  return [
    ...values ? [fillRows({ values, out }, { rows, cols, label: "draft.fcBias" })] : [],
    ...matmul(
      { matrix, x, out },
      { rows, epilogue: values ? "add" : "store", tuning, label: "draft.fc" },
    ),
  ];
}
