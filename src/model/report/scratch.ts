/** How much GPU memory the plans of models write to, from their configs alone. */
import { gatheredWords } from "../../../kernels/sample/gather.ts";
import { attentionPartialWords } from "../../../kernels/mla/partial_words.ts";
import { MOST_NORMED_ROWS } from "../../../kernels/matmul/hold/norms_rows.ts";
import { headWords } from "../../../kernels/attention/relayed_heads.ts";
import { relayWords, sumWords } from "../../../kernels/matmul/relay/relay.ts";
import { slicePartialWords } from "../../../kernels/sample/slice_partials.ts";
import type { KvDtype } from "../../gpu/kv.ts";
import { MOST_SPLIT_K, type Tuning, tuning } from "../../gpu/matrix.ts";
import type { MatrixUnit } from "../../gpu/matrix_unit.ts";
import {
  actWidth,
  attentionSizes,
  headsOf,
  type LayerConfig,
  mostJobs,
  mostRowJobs,
  ropeWidth,
} from "../config/layer_config.ts";
import type { AnyDraftConfig, ModelConfig } from "../config/types.ts";
import { mixtureTileWords } from "../plan/mixture_sizes.ts";
import { PAGE } from "../plan/device_layout.ts";
import { sumsWidth } from "../plan/sums_width.ts";

const F32_BYTES = 4;

/** What sizes depend on beside the models. */
export interface ScratchRows {
  /** Of a prefill chunk, or of the widest round. */
  readonly rows: number;
  readonly verifyRows: number;
  /** Tokens of a slot. */
  readonly context: number;
  /** Of keys and values; default f32. */
  readonly kvDtype?: KvDtype | undefined;
  /** Rows that get the draft's logits; default: as many as get the target's. */
  readonly batch?: number;
  /** Of the adapter; default: of most hardware. */
  readonly rules?: Pick<
    Tuning,
    "software" | "relays" | "workgroupBytes" | "packedRows" | "rowLanes" | "attentionUnits"
  >;
  /** Where matrices go to matrix units. */
  readonly unit?: MatrixUnit | undefined;
}

const HARDWARE: NonNullable<ScratchRows["rules"]> = tuning(false, {
  maxComputeInvocationsPerWorkgroup: 1024,
  maxComputeWorkgroupStorageSize: 49152,
});

/**
 * Bytes of working memory of the engine's default plans: per row of a prefill chunk the
 * residual stream, normed input, q, attention output, gated MLP and final norm; the draft's
 * likewise with its inputs side by side and the features it reads; logits of the verify rows and what
 * tokens are chosen from; rope tables; the partial sums of attention over a slot of `context` tokens, which
 * both share.
 */
export function scratchBytes(
  target: ModelConfig,
  draft: AnyDraftConfig | undefined,
  sizes: ScratchRows,
): number {
  const { rows, verifyRows, context, batch = verifyRows, rules = HARDWARE } = sizes;
  const features = draft?.algorithm === "EAGLE3" ? 3 * target.hiddenSize : 0;
  // Inputs side by side, or the final norm's output of a whole model.
  const beside = draft?.algorithm === "STANDALONE" ? 1 : 2;
  const drafting = draft ? beside * draft.layer.hiddenSize + features : 0;
  const perRow = target.hiddenSize + drafting;
  const drafted = draft?.algorithm === "STANDALONE"
    ? batch * choiceElements(draft.layer, rules)
    : batch * (draft?.draftVocabSize ?? 0);
  const { kvDtype = "f32" } = sizes;
  const layout = { tablePages: Math.ceil(context / PAGE), kvDtype };
  const models = [target, ...draft ? [draft.layer] : []];
  const kept = models.flatMap(({ layers }) => layers).map(({ attention }) =>
    attentionPartialWords(headsOf(attention, layout), rows, rules)
  );
  const partial = Math.max(...kept.map(({ sums, stats }) => sums + stats)) +
    Math.max(...kept.map(({ halves = 0 }) => halves));
  return F32_BYTES *
    (rows * perRow + verifyRows * choiceElements(target, rules) + drafted + partial +
      models.reduce(
        (sum, model, i) => sum + decoderElements(model, { ...sizes, rules, drafts: i > 0 }),
        0,
      ));
}

/** Of a decoder's layers, beside its weights. */
function decoderElements(
  config: ModelConfig,
  { rows, context, rules, unit, drafts }: ScratchRows & {
    readonly rules: typeof HARDWARE;
    readonly drafts: boolean;
  },
): number {
  const { hiddenSize, layers, ropes } = config;
  const mixtures = new Set(layers.flatMap(({ mlp }) => mlp.kind === "mixture" ? [mlp] : []));
  const tiles = [...mixtures].map((mlp) => mixtureTileWords(mlp, rows, { rules, unit }));
  const positions = Math.ceil(context / PAGE) * PAGE;
  const sizes = layers.map(({ attention }) => attentionSizes(attention));
  const heads = Math.max(...sizes.map(({ ownRow }) => ownRow)) -
    rows * Math.max(...sizes.map(({ qkv }) => qkv));
  const relayed = rules.relays
    ? relayWords(Math.max(...layers.map(({ mlp }) => actWidth(mlp)))) + MOST_SPLIT_K * hiddenSize +
      Math.max(headWords(Math.max(...sizes.map(({ ownRow }) => ownRow))), sumWords(hiddenSize))
    : 0;
  return rows * rowElements(config, { drafts, unit }) + Math.max(0, heads) + relayed +
    MOST_NORMED_ROWS * hiddenSize +
    Math.max(0, ...tiles) +
    ropes.length * positions * ropeWidth((layers[0] as LayerConfig).attention) +
    (unit ? (NOTED_SCALES + mostRowJobs(layers)) * rows : 0);
}

/** Inputs of matmuls whose rows' scales are kept for matrix units, gated activations apart: normed ones, and attention's. */
const NOTED_SCALES = 2;

/** Of a row: logits, and what a token is chosen from. */
function choiceElements(
  { vocabSize }: ModelConfig,
  { rowLanes }: Pick<Tuning, "rowLanes">,
): number {
  return vocabSize + slicePartialWords(vocabSize) + gatheredWords(vocabSize, rowLanes);
}

/** Of a row in the widest layer: attention and MLP take turns in the same buffers. */
export function rowElements(
  config: ModelConfig,
  of: { readonly drafts: boolean; readonly unit?: MatrixUnit | undefined },
): number {
  const { hiddenSize, layers } = config;
  const widest = (width: (layer: LayerConfig) => number) => Math.max(...layers.map(width));
  return 2 * hiddenSize + sumsWidth(config, of) +
    widest(({ attention }) => attentionSizes(attention).qkv) +
    widest(({ attention }) => attentionSizes(attention).q) +
    widest(({ attention }) => attentionSizes(attention).attentionOutput) +
    widest(({ mlp }) => actWidth(mlp)) +
    widest(({ mlp }) => mixtureElements(mlp, hiddenSize));
}

/** Router's logits, chosen experts, their weights and outputs. */
function mixtureElements(mlp: LayerConfig["mlp"], hiddenSize: number): number {
  if (mlp.kind === "dense") return 0;
  return mlp.routing.numExperts + 1 + mostJobs(mlp) * (2 + hiddenSize);
}
