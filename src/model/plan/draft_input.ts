/** What an EAGLE head makes of a token and a hidden row before its decoder layer. */
import { embed } from "../../../shaders/norm/embed.ts";
import { matmul } from "../../../shaders/matmul/matmul.ts";
import { copyRows, fillRows, gatherRows } from "../../../shaders/round/move_rows.ts";
import { normPair, pairsNorms } from "../../../shaders/norm/norm_pair.ts";
import { rmsNorm } from "../../../shaders/norm/rms_norm.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import { norm, type RowsOf } from "./decoder_context.ts";
import type { Draft, DraftWeights, Features, HiddenRows } from "./draft_types.ts";

/**
 * EAGLE-3: fcInput = [inputNorm(embedding), hiddenNorm(h)] with h = fc(aux hidden states), or the
 * draft's own hidden row; x = h, or hiddenNorm(h) where the checkpoint norms before the residual.
 */
export function eagle3Input(draft: Draft, of: RowsOf, from: Features | HiddenRows): Dispatch[] {
  const { weights, fcInput, scratch: { x, normed }, config: { hiddenSize } } = draft;
  const { input, hidden } = weights.norms as NonNullable<DraftWeights["norms"]>;
  const { rows, count } = of;
  const half = { out: fcInput, outCols: 2 * hiddenSize };
  const h = "features" in from ? { x: normed } : { x: from.hidden, index: from.index };
  const keep = { what: draft.draft.normBeforeResidual ? "output" : "input", out: x } as const;
  const { embed: matrix } = weights;
  if (pairsNorms(matrix)) {
    const token = { matrix, rows, weight: input };
    const both = { token, hidden: { ...h, weight: hidden }, out: fcInput, kept: keep };
    const { config: { rmsNormEps: eps }, tuning: { rowLanes: lanes } } = draft;
    const shape = { rows: count, cols: hiddenSize, eps, lanes, label: "draft.inputNorms" };
    const features = "features" in from ? fcOfFeatures(draft, from, count) : [];
    return [...features, normPair(both, shape)];
  }
  const embedding = { from: { matrix, rows }, weight: input, ...half };
  const features = { from: h, weight: hidden, ...half, outFirst: hiddenSize, keep };
  return [
    ...norm(draft, embedding, count, "draft.inputNorm"),
    ..."features" in from ? fcOfFeatures(draft, from, count) : [],
    ...norm(draft, features, count, "draft.hiddenNorm"),
  ];
}

/** EAGLE-1/2: x = fc([embedding, hidden]). */
export function eagle1Input(draft: Draft, of: RowsOf, from: Features | HiddenRows): Dispatch[] {
  const { weights, fcInput, scratch, config: { hiddenSize: cols } } = draft;
  if (weights.inputNorms.length > 0) return hassInput(draft, of, from);
  const { rows, count } = of;
  const second = { rows: count, cols, outCols: 2 * cols, outFirst: cols, label: "draft.hidden" };
  return [
    ...embed(
      { matrix: weights.embed, rows, out: fcInput },
      { count, outCols: 2 * cols, label: "draft.embed" },
    ),
    "features" in from
      ? copyRows({ x: from.features, out: fcInput }, second)
      : gatherRows({ x: from.hidden, index: from.index, out: fcInput }, second),
    ...fc(draft, { x: fcInput, out: scratch.x }, count),
  ];
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
export function nextnInput(draft: Draft, of: RowsOf, from: Features | HiddenRows): Dispatch[] {
  const { weights, scratch: { normed: out } } = draft;
  const weight = weights.layerNorm as Operand;
  return [
    ...hassInput(draft, of, from),
    ...norm(draft, { weight, out }, of.count, "draft.layerNorm"),
  ];
}

/** normed = fc(aux hidden states), normed together or each alone where the checkpoint has it so. */
function fcOfFeatures(draft: Draft, { features }: Features, rows: number): Dispatch[] {
  const { weights: { inputNorms, fc: { cols: all } }, normedFeatures, tuning, config } = draft;
  const { normed } = draft.scratch;
  if (normedFeatures === undefined) return fc(draft, { x: features, out: normed }, rows);
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
  return [...each, ...fc(draft, { x: out, out: normed }, rows)];
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
