import { draftChoose, type NextLevel } from "../../../shaders/choose/draft_choose.ts";
import { matmul } from "../../../shaders/matmul/matmul.ts";
import { matmulPeakCount, matmulPeaks } from "../../../shaders/matmul/matmul_peaks.ts";
import { gatherRows, scatterRows } from "../../../shaders/round/move_rows.ts";
import { peaks as peaksPass, peaksOf } from "../../../shaders/choose/peaks.ts";
import { UsageError } from "../../errors.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import type { Matrix, Table } from "../../gpu/matrix.ts";
import type { Checkpoint, TensorInfo } from "../checkpoint/checkpoint.ts";
import type { DraftConfig, ModelConfig } from "../config/config.ts";
import { attentionBlock, type DecoderLayer, loadLayer, mlpBlock } from "./decoder.ts";
import { type DecoderContext, type LayerKv, norm, type RowsOf } from "./decoder_context.ts";
import { eagle1Input, eagle3Input, nextnInput } from "./draft_input.ts";
import { byRole, type TargetWeights } from "./target.ts";
import type { LayerSpec } from "../config/layer_spec.ts";
import { draftTensors } from "../weights/tensors.ts";
import type { Loader } from "../weights/loader.ts";

/** Weights of an EAGLE head or a NextN layer; what it has not is undefined, or the target's. */
export interface DraftWeights {
  /** [vocab, hidden]; the target's where the checkpoint has none. */
  readonly embed: Table;
  /** EAGLE: [hidden, 2 hidden] over (embedding, hidden). EAGLE-3: [hidden, 3 target hidden]. */
  readonly fc: Matrix;
  readonly fcBias: Operand | undefined;
  readonly layer: DecoderLayer;
  /** EAGLE-3: norms of the embedding and of the hidden row. */
  readonly norms: { readonly input: Operand; readonly hidden: Operand } | undefined;
  /** NEXTN: of what enters the layer. */
  readonly layerNorm: Operand | undefined;
  /** EAGLE-3, NEXTN: before the head. */
  readonly finalNorm: Operand | undefined;
  /** Norms before `fc`, in the order of its columns; see `DraftConfig.inputNorms`. */
  readonly inputNorms: readonly Operand[];
  /** [draft vocab, hidden] */
  readonly head: Matrix;
  /** d2t: target id minus draft id, i32 [draft vocab]. */
  readonly offsets: Operand;
}

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

/** The draft and what its plans write to. */
export interface Draft extends DecoderContext {
  readonly draft: DraftConfig;
  readonly weights: DraftWeights;
  readonly kv: LayerKv;
  /** Inputs side by side, [rows, 2 hidden]: (embedding, hidden). */
  readonly wide: Operand;
  /** Where features are normed before `fc` (EAGLE-3). */
  readonly normedFeatures: NormedFeatures | undefined;
  /** EAGLE-1/2: rows whose draft token is wanted, [batch, hidden]. */
  readonly ends: Operand;
  /** The draft's own last hidden row of each slot, [slots, hidden]. */
  readonly carry: Operand;
  /** [batch, head.rows]; absent: the head leaves peaks alone, see `canLeavePeaks`. */
  readonly logits: Operand | undefined;
  /** The largest logits of some columns, (key, token) u32 [batch, peaks of a lane, 2]. */
  readonly peaks: Operand;
  /** What is drafted for each slot, [slots, draftWords(mostRows)]. */
  readonly drafts: Operand;
  /** Rows that a slot may have in any round. */
  readonly mostRows: number;
}

/** Room for the features of a draft-extend, normed, [rows, 3 target hidden]. */
export interface NormedFeatures {
  readonly out: Operand;
  /** Of each tap i: 3 r + i for every row r, where rows are as wide as one tap. */
  readonly taps: readonly Operand[];
}

/** The target's hidden rows that a draft-extend feeds: `final` (EAGLE) or the taps side by side. */
export interface Features {
  readonly features: Operand;
}

/** The slots whose own hidden rows a draft level feeds, [batch]. */
export interface Lanes {
  readonly lanes: Operand;
}

/**
 * One draft forward over rows whose token is one ahead of their hidden row. Leaves the hidden
 * rows in `scratch.x`.
 */
export function draftBody(draft: Draft, of: RowsOf, from: Features | Lanes): Dispatch[] {
  const layer = { ...draft.weights.layer, kv: draft.kv, label: "draft" };
  const { input, attended } = entry(draft);
  const attention = attentionBlock(draft, layer, attended, of);
  const mlp = mlpBlock(draft, layer, { stream: attention.stream, rows: of.count, end: "x" });
  return [...input(draft, of, from), ...attention.plan, ...mlp.plan];
}

/** What makes x of tokens and hidden rows, and what the attention reads. */
function entry({ draft: { algorithm }, wide, scratch: { x, normed } }: Draft) {
  switch (algorithm) {
    case "EAGLE3":
      return { input: eagle3Input, attended: wide };
    case "EAGLE":
      return { input: eagle1Input, attended: x };
    case "NEXTN":
      return { input: nextnInput, attended: normed };
  }
}

/** What a draft level leaves: a token of each lane, and the hidden row to carry on from. */
export interface DraftEnd {
  readonly batch: number;
  readonly step: number;
  /** Row of `scratch.x` of each lane, [batch]; absent: lane b is row b. */
  readonly last?: Operand;
  /** Whether a further level follows, at once or in the next round. */
  readonly carry: boolean;
  /** Where that level's rows go, if it follows at once. */
  readonly next?: NextLevel | undefined;
}

/** Draft token `step` of each lane, and the hidden row that the next level carries on from. */
export function draftHead(draft: Draft, { lanes }: Lanes, end: DraftEnd): Dispatch[] {
  const { weights, ends, scratch, peaks, drafts, mostRows, tuning } = draft;
  const { batch, step, last, next } = end;
  const label = `draft_choose.${step}`;
  const [x, input] = weights.finalNorm
    ? [scratch.normed, normedEnds(draft, lanes, end, weights.finalNorm)]
    : [last ? ends : scratch.x, plainEnds(draft, lanes, end)];
  const { plan, count } = headPeaks(draft, x, { rows: batch, label: `${label}.peaks` });
  return [
    ...input,
    ...plan,
    draftChoose({ peaks, offsets: weights.offsets, lanes, drafts, next }, {
      ...{ batch, count, step, mostRows, label },
      lanes: tuning.rowLanes,
    }),
  ];
}

/** The peaks of the logits of x: of parts of the columns that the head makes, or of slices of logits. */
function headPeaks(
  { weights: { head: matrix }, draft: { draftVocabSize: vocab }, logits, peaks, tuning }: Draft,
  x: Operand,
  { rows, label }: { readonly rows: number; readonly label: string },
): { readonly plan: Dispatch[]; readonly count: number } {
  const use = { rows, tuning, label: "draft.head" };
  if (logits === undefined) {
    return {
      plan: matmulPeaks({ matrix, x, peaks }, { ...use, vocab }),
      count: matmulPeakCount(matrix, use),
    };
  }
  const slices = { rows, vocab, stride: matrix.rows, lanes: tuning.rowLanes, label };
  return {
    plan: [
      ...matmul({ matrix, x, out: logits }, { ...use, finish: "store" }),
      peaksPass({ logits, peaks }, slices),
    ],
    count: peaksOf(vocab),
  };
}

/** EAGLE-3, NEXTN: normed = norm(x[last]); x[last], or normed by `normOutput`, to where it is carried. */
function normedEnds(
  draft: Draft,
  slot: Operand,
  { batch, last, carry }: DraftEnd,
  weight: Operand,
): Dispatch[] {
  const { x, normed: out } = draft.scratch;
  const from = last ? { x, index: last } : { x };
  if (draft.draft.normOutput) {
    const { hiddenSize: cols } = draft.config;
    const carried = { x: out, index: slot, out: draft.carry };
    return [
      ...norm(draft, { from, weight, out }, batch, "draft.norm"),
      ...carry ? [scatterRows(carried, { rows: batch, cols, label: "draft.carry" })] : [],
    ];
  }
  const keep = carry ? { what: "slot", out: draft.carry, slot } as const : undefined;
  return norm(draft, { from, weight, out, keep }, batch, "draft.norm");
}

/** EAGLE-1/2: ends = x[last], where rows are not lanes, and to where it is carried. */
function plainEnds(
  { ends, scratch: { x }, carry: carried, config: { hiddenSize: cols } }: Draft,
  lanes: Operand,
  { batch: rows, last, carry }: DraftEnd,
): Dispatch[] {
  const from = last ? ends : x;
  return [
    ...last ? [gatherRows({ x, index: last, out: ends }, { rows, cols, label: "draft.ends" })] : [],
    ...carry
      ? [scatterRows({ x: from, index: lanes, out: carried }, { rows, cols, label: "draft.carry" })]
      : [],
  ];
}

/** Width of the features a draft-extend reads, f32 a row. */
export function featureWidth(draft: DraftConfig, target: ModelConfig): number {
  return draft.algorithm === "EAGLE3" ? 3 * target.hiddenSize : target.hiddenSize;
}
