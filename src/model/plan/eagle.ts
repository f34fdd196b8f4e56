import { draftChoose, type NextLevel } from "../../../shaders/choose/draft_choose.ts";
import { matmul } from "../../../shaders/matmul/matmul.ts";
import { matmulArgmax, matmulArgmaxCount } from "../../../shaders/matmul/matmul_argmax.ts";
import { gatherRows, scatterRows } from "../../../shaders/round/move_rows.ts";
import { partialArgmax, partialArgmaxCount } from "../../../shaders/choose/partial_argmax.ts";
import { UsageError } from "../../errors.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import type { TensorInfo } from "../files/safetensors.ts";
import type { DraftConfig, ModelConfig } from "../config/types.ts";
import { attentionBlock, type DecoderLayer, loadLayer, mlpBlock } from "./decoder.ts";
import { norm, type RowsOf } from "./decoder_context.ts";
import type { BatchSlots, Draft, DraftWeights, Features } from "./draft_types.ts";
import { eagle1Input, eagle3Input, nextnInput } from "./draft_input.ts";
import { byRole, type TargetWeights } from "./target.ts";
import type { LayerSpec } from "../config/layer_spec.ts";
import { draftTensors } from "../weights/tensors.ts";
import type { Loader } from "../weights/loader.ts";

/** Loads an EAGLE head. The tensors were checked before (checkTensors). */
export function loadDraft(
  load: Loader,
  checkpoint: Checkpoint,
  config: DraftConfig,
  target: TargetWeights,
): DraftWeights {
  const specs = draftTensors(config);
  const tensor = byRole(checkpoint, specs);
  const vector = (role: string) => load.vector(`draft.${role}`, tensor(role));
  const matrix = (role: string) => load.matrix(`draft.${role}`, [tensor(role)]);
  const offsets = config.reducedVocab
    ? readOffsets(checkpoint, tensor("d2t"), config)
    : new Int32Array(config.draftVocabSize);
  return {
    embed: config.ownEmbedding ? load.table("draft.embed", tensor("embed")) : target.embed,
    fc: matrix("fc"),
    fcBias: config.fcBias ? vector("fcBias") : undefined,
    layer: loadDraftLayer(load, tensor, config),
    norms: config.algorithm === "EAGLE3"
      ? { input: vector("layers.0.inputNorm"), hidden: vector("layers.0.hiddenNorm") }
      : undefined,
    layerNorm: config.algorithm === "NEXTN" ? vector("layers.0.inputNorm") : undefined,
    finalNorm: config.algorithm === "EAGLE" ? undefined : vector("norm"),
    inputNorms: specs.map(({ role }) => role).filter((role) => role.startsWith("inputNorms."))
      .map(vector),
    head: config.ownHead ? matrix("head") : target.head,
    offsets: load.ids("d2t", offsets),
  };
}

function loadDraftLayer(
  load: Loader,
  tensor: (role: string) => TensorInfo,
  { layer }: DraftConfig,
): DecoderLayer {
  const label = "layers.0";
  const ofLayer = (role: string) => tensor(`${label}.${role}`);
  const source = { load, label, tensor: ofLayer, normOffset: layer.normOffset };
  return loadLayer(source, layer.layers[0] as LayerSpec, layer);
}

/**
 * Reads d2t, I64 or I32 [draft vocab]: offsets, so draft id i is target id i + d2t[i].
 *
 * @throws UsageError where an id would leave the target's vocabulary.
 */
export function readOffsets(
  checkpoint: Checkpoint,
  tensor: TensorInfo,
  config: DraftConfig,
): Int32Array<ArrayBuffer> {
  const bytes = new Uint8Array(tensor.size);
  checkpoint.read(tensor, 0, bytes);
  const view = new DataView(bytes.buffer);
  const wide = tensor.dtype === "I64";
  return Int32Array.from({ length: config.draftVocabSize }, (_, i) => {
    const offset = wide ? Number(view.getBigInt64(i * 8, true)) : view.getInt32(i * 4, true);
    const id = i + offset;
    if (id >= 0 && id < config.layer.vocabSize) return offset;
    throw new UsageError(
      `Cannot use "${checkpoint.name}/${tensor.file}": tensor "${tensor.name}" maps draft ` +
        `token ${i} to ${id}, the vocabulary has ${config.layer.vocabSize}`,
    );
  });
}

/**
 * One draft forward over rows whose token is one ahead of their hidden row. Leaves the hidden
 * rows in `scratch.x`.
 */
export function draftBody(draft: Draft, of: RowsOf, from: Features | BatchSlots): Dispatch[] {
  const layer = { ...draft.weights.layer, kv: draft.kv, label: "draft" };
  const { input, attended } = entry(draft);
  const attention = attentionBlock(draft, layer, attended, of);
  const mlp = mlpBlock(draft, layer, { stream: attention.stream, rows: of.count, end: "x" });
  return [...input(draft, of, from), ...attention.plan, ...mlp.plan];
}

/** What makes x of tokens and hidden rows, and what the attention reads. */
function entry({ draft: { algorithm }, fcInput, scratch: { x, normed } }: Draft) {
  switch (algorithm) {
    case "EAGLE3":
      return { input: eagle3Input, attended: fcInput };
    case "EAGLE":
      return { input: eagle1Input, attended: x };
    case "NEXTN":
      return { input: nextnInput, attended: normed };
  }
}

/** What a draft level stores: a token of each sequence, and the hidden row that the next level reads. */
export interface DraftEnd {
  readonly batch: number;
  readonly step: number;
  /** Row of `scratch.x` of each sequence, [batch]; absent: sequence b is row b. */
  readonly last?: Operand;
  /** Whether a further level follows, at once or in the next round. */
  readonly keepHidden: boolean;
  /** Where that level's rows go, if it follows at once. */
  readonly next?: NextLevel | undefined;
}

/** Draft token `step` of each sequence, and the hidden row that the next level reads. */
export function draftHead(draft: Draft, { batchSlots }: BatchSlots, end: DraftEnd): Dispatch[] {
  const { weights, ends, scratch, partials, drafts, mostRows, tuning } = draft;
  const { batch, step, last, next } = end;
  const label = `draft_choose.${step}`;
  const [x, input] = weights.finalNorm
    ? [scratch.normed, normedEnds(draft, batchSlots, end, weights.finalNorm)]
    : [last ? ends : scratch.x, plainEnds(draft, batchSlots, end)];
  const { plan, count } = headArgmax(draft, x, { rows: batch, label: `${label}.partial_argmax` });
  return [
    ...input,
    ...plan,
    draftChoose({ partials, offsets: weights.offsets, batchSlots, drafts, next }, {
      ...{ batch, count, step, mostRows, label },
      lanes: tuning.rowLanes,
    }),
  ];
}

/** Partial argmaxes of the logits of x: by parts of the head's columns, or by slices of stored logits. */
function headArgmax(
  { weights: { head: matrix }, draft: { draftVocabSize: vocab }, logits, partials, tuning }: Draft,
  x: Operand,
  { rows, label }: { readonly rows: number; readonly label: string },
): { readonly plan: Dispatch[]; readonly count: number } {
  const use = { rows, tuning, label: "draft.head" };
  if (logits === undefined) {
    return {
      plan: matmulArgmax({ matrix, x, partials }, { ...use, vocab }),
      count: matmulArgmaxCount(matrix, use),
    };
  }
  const slices = { rows, vocab, stride: matrix.rows, lanes: tuning.rowLanes, label };
  return {
    plan: [
      ...matmul({ matrix, x, out: logits }, { ...use, epilogue: "store" }),
      partialArgmax({ logits, partials }, slices),
    ],
    count: partialArgmaxCount(vocab),
  };
}

/** EAGLE-3, NEXTN: normed = norm(x[last]); x[last], or normed by `normOutput`, into `hidden`. */
function normedEnds(
  draft: Draft,
  slot: Operand,
  { batch, last, keepHidden }: DraftEnd,
  weight: Operand,
): Dispatch[] {
  const { x, normed: out } = draft.scratch;
  const from = last ? { x, index: last } : { x };
  if (draft.draft.normOutput) {
    const { hiddenSize: cols } = draft.config;
    const kept = { x: out, index: slot, out: draft.hidden };
    return [
      ...norm(draft, { from, weight, out }, batch, "draft.norm"),
      ...keepHidden ? [scatterRows(kept, { rows: batch, cols, label: "draft.keepHidden" })] : [],
    ];
  }
  const keep = keepHidden ? { what: "slot", out: draft.hidden, slot } as const : undefined;
  return norm(draft, { from, weight, out, keep }, batch, "draft.norm");
}

/** EAGLE-1/2: ends = x[last], where row b is not sequence b, and into `hidden`. */
function plainEnds(
  { ends, scratch: { x }, hidden: out, config: { hiddenSize: cols } }: Draft,
  batchSlots: Operand,
  { batch: rows, last, keepHidden }: DraftEnd,
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

/** Width of the features a draft-extend reads, f32 a row. */
export function featureWidth(draft: DraftConfig, target: ModelConfig): number {
  return draft.algorithm === "EAGLE3" ? 3 * target.hiddenSize : target.hiddenSize;
}
