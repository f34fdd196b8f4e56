import { draftChoose, type NextLevel } from "../../shaders/draft_choose.ts";
import { embed } from "../../shaders/embed.ts";
import { matmul } from "../../shaders/matmul.ts";
import { copyRows, fillRows, gatherRows, scatterRows } from "../../shaders/move_rows.ts";
import { UsageError } from "../errors.ts";
import type { Gpu } from "../gpu/device.ts";
import type { Dispatch, Operand } from "../gpu/kernel.ts";
import type { Matrix, Table } from "../gpu/matrix.ts";
import type { Checkpoint, TensorInfo } from "./checkpoint.ts";
import type { DraftConfig, ModelConfig } from "./config.ts";
import {
  attentionBlock,
  type DecoderContext,
  type DecoderLayer,
  type LayerKv,
  loadLayer,
  mlpBlock,
  norm,
  type RowsOf,
} from "./decoder.ts";
import { byRole, type TargetWeights } from "./llama.ts";
import type { LayerSpec } from "./layer_spec.ts";
import { draftTensors } from "./tensors.ts";
import { type Loader, vectorBuffer } from "./weights.ts";

/** Weights of an EAGLE head (EAGLE-1/2: no norms, the target's head; EAGLE-3: all of them). */
export interface DraftWeights {
  /** [vocab, hidden]; the target's where the checkpoint has none. */
  readonly embed: Table;
  /** EAGLE: [hidden, 2 hidden] over (embedding, hidden). EAGLE-3: [hidden, 3 target hidden]. */
  readonly fc: Matrix;
  readonly fcBias: Operand | undefined;
  readonly layer: DecoderLayer;
  /** EAGLE-3: norms of the embedding and of the hidden row, and the one before the head. */
  readonly norms:
    | { readonly input: Operand; readonly hidden: Operand; readonly final: Operand }
    | undefined;
  /** [draft vocab, hidden] */
  readonly head: Matrix;
  /** d2t: target id minus draft id, i32 [draft vocab]. */
  readonly offsets: Operand;
}

/** Loads an EAGLE head. The tensors were checked before (checkTensors). */
export function loadDraft(
  gpu: Gpu,
  load: Loader,
  checkpoint: Checkpoint,
  config: DraftConfig,
  target: TargetWeights,
): DraftWeights {
  const tensor = byRole(checkpoint, draftTensors(config));
  const vector = (role: string) => load.vector(`draft.${role}`, tensor(role));
  const matrix = (role: string) => load.matrix(`draft.${role}`, [tensor(role)]);
  const offsets = config.reducedVocab
    ? readOffsets(checkpoint, tensor("d2t"), config)
    : new Int32Array(config.draftVocabSize);
  return {
    embed: config.ownEmbedding ? load.table("draft.embed", tensor("embed")) : target.embed,
    fc: matrix("fc"),
    fcBias: config.fcBias ? vector("fcBias") : undefined,
    layer: loadLayer(load, "layers.0", tensor, config.layer.layers[0] as LayerSpec),
    norms: config.algorithm === "EAGLE3"
      ? {
        input: vector("layers.0.inputNorm"),
        hidden: vector("layers.0.hiddenNorm"),
        final: vector("norm"),
      }
      : undefined,
    head: config.ownHead ? matrix("head") : target.head,
    offsets: vectorBuffer(gpu, "d2t", offsets),
  };
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
): Int32Array {
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
  /** EAGLE-1/2: rows whose draft token is wanted, [batch, hidden]. */
  readonly ends: Operand;
  /** The draft's own last hidden row of each slot, [slots, hidden]. */
  readonly carry: Operand;
  /** [batch, head.rows] */
  readonly logits: Operand;
  /** Largest logits of slices, u32 [batch, peakWords(draft vocab)]. */
  readonly peaks: Operand;
  /** Draft tokens of each slot, [slots, MAX_STEPS]. */
  readonly drafts: Operand;
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
  const input = draft.draft.algorithm === "EAGLE3" ? eagle3Input : eagle1Input;
  const attended = draft.draft.algorithm === "EAGLE3" ? draft.wide : draft.scratch.x;
  return [
    ...input(draft, of, from),
    ...attentionBlock(draft, layer, attended, of),
    ...mlpBlock(draft, layer, of.count, "x"),
  ];
}

/**
 * EAGLE-3: wide = [inputNorm(embedding), hiddenNorm(h)] with h = fc(taps) or the carried row;
 * x = h, or hiddenNorm(h) where the checkpoint norms before the residual.
 */
function eagle3Input(draft: Draft, of: RowsOf, from: Features | Lanes): Dispatch[] {
  const { weights, wide, carry, scratch: { x, normed }, config: { hiddenSize } } = draft;
  const { input, hidden } = weights.norms as NonNullable<DraftWeights["norms"]>;
  const { rows, count } = of;
  const half = { out: wide, outCols: 2 * hiddenSize };
  const embedding = { from: { matrix: weights.embed, rows }, weight: input, ...half };
  const h = "features" in from ? { x: normed } : { x: carry, index: from.lanes };
  const keep = { what: draft.draft.normBeforeResidual ? "output" : "input", out: x } as const;
  const features = { from: h, weight: hidden, ...half, outFirst: hiddenSize, keep };
  return [
    ...norm(draft, embedding, count, "draft.inputNorm"),
    ..."features" in from ? fc(draft, { x: from.features, out: normed }, count) : [],
    ...norm(draft, features, count, "draft.hiddenNorm"),
  ];
}

/** EAGLE-1/2: x = fc([embedding, hidden]). */
function eagle1Input(draft: Draft, of: RowsOf, from: Features | Lanes): Dispatch[] {
  const { weights, wide, carry, scratch, config: { hiddenSize: cols } } = draft;
  const { rows, count } = of;
  const second = { rows: count, cols, outCols: 2 * cols, outFirst: cols, label: "draft.hidden" };
  return [
    ...embed(
      { matrix: weights.embed, rows, out: wide },
      { count, outCols: 2 * cols, label: "draft.embed" },
    ),
    "features" in from
      ? copyRows({ x: from.features, out: wide }, second)
      : gatherRows({ x: carry, index: from.lanes, out: wide }, second),
    ...fc(draft, { x: wide, out: scratch.x }, count),
  ];
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
      { rows, finish: values ? "add" : "store", tuning, label: "draft.fc" },
    ),
  ];
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
  const { weights, ends, scratch, logits, peaks, drafts, tuning } = draft;
  const { batch, step, last, next } = end;
  const [x, input] = weights.norms
    ? [scratch.normed, normedEnds(draft, lanes, end, weights.norms.final)]
    : [last ? ends : scratch.x, plainEnds(draft, lanes, end)];
  return [
    ...input,
    ...matmul(
      { matrix: weights.head, x, out: logits },
      { rows: batch, finish: "store", tuning, label: "draft.head" },
    ),
    ...draftChoose({ logits, peaks, offsets: weights.offsets, lanes, drafts, next }, {
      batch,
      vocab: draft.draft.draftVocabSize,
      stride: weights.head.rows,
      step,
      lanes: tuning.rowLanes,
    }),
  ];
}

/** EAGLE-3: normed = norm(x[last]), and x[last] to where it is carried. */
function normedEnds(
  draft: Draft,
  slot: Operand,
  { batch, last, carry }: DraftEnd,
  weight: Operand,
): Dispatch[] {
  const { x, normed: out } = draft.scratch;
  const from = last ? { x, index: last } : { x };
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
