import { draftChoose } from "../../shaders/choose.ts";
import { embed } from "../../shaders/embed.ts";
import { matmul } from "../../shaders/matmul.ts";
import { copyRows, fillRows, gatherRows, scatterRows } from "../../shaders/move_rows.ts";
import { UsageError } from "../errors.ts";
import type { Gpu } from "../gpu/device.ts";
import type { Dispatch, Operand } from "../gpu/kernel.ts";
import type { Matrix } from "../gpu/matrix.ts";
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
import { draftTensors } from "./tensors.ts";
import { type Loader, vectorBuffer } from "./weights.ts";

/** Weights of an EAGLE head (EAGLE-1/2: no norms, the target's head; EAGLE-3: all of them). */
export interface DraftWeights {
  /** [vocab, hidden]; the target's where the checkpoint has none. */
  readonly embed: Matrix;
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
    embed: config.ownEmbedding ? matrix("embed") : target.embed,
    fc: matrix("fc"),
    fcBias: config.fcBias ? vector("fcBias") : undefined,
    layer: loadLayer(load, "layers.0", tensor, config.layer.qkNorm),
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
  /** Token embeddings, [rows, hidden]. */
  readonly tokens: Operand;
  /** Rows whose draft token is wanted, [batch, hidden]. */
  readonly ends: Operand;
  /** The draft's own last hidden row of each slot, [slots, hidden]. */
  readonly carry: Operand;
  /** [batch, head.rows] */
  readonly logits: Operand;
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
    ...mlpBlock(draft, layer, of.count),
  ];
}

/** EAGLE-3: x = fc(taps) or the carried row; wide = [inputNorm(embedding), hiddenNorm(x)]. */
function eagle3Input(draft: Draft, of: RowsOf, from: Features | Lanes): Dispatch[] {
  const { weights, wide, tokens, scratch: { x, normed }, config: { hiddenSize: cols } } = draft;
  const { input, hidden } = weights.norms as NonNullable<DraftWeights["norms"]>;
  const { rows, count } = of;
  const second = { outCols: 2 * cols, outFirst: cols };
  const hiddenRows = draft.draft.normBeforeResidual
    ? [
      norm(draft, { weight: hidden, out: normed }, count, "draft.hiddenNorm"),
      copyRows({ x: normed, out: x }, { rows: count, cols, label: "draft.residual" }),
      copyRows({ x: normed, out: wide }, { rows: count, cols, ...second, label: "draft.hidden" }),
    ]
    : [norm(draft, { weight: hidden, out: wide, ...second }, count, "draft.hiddenNorm")];
  return [
    ...embed({ matrix: weights.embed, rows, out: tokens }, { count, label: "draft.embed" }),
    norm(
      draft,
      { x: tokens, weight: input, out: wide, outCols: 2 * cols },
      count,
      "draft.inputNorm",
    ),
    ..."features" in from
      ? fc(draft, from.features, count)
      : [carried(draft, from, of, { out: x })],
    ...hiddenRows,
  ];
}

/** EAGLE-1/2: x = fc([embedding, hidden]). */
function eagle1Input(draft: Draft, of: RowsOf, from: Features | Lanes): Dispatch[] {
  const { weights, wide, config: { hiddenSize: cols } } = draft;
  const { rows, count } = of;
  const second = { out: wide, outCols: 2 * cols, outFirst: cols };
  const { out, ...window } = second;
  const hidden = "features" in from
    ? copyRows({ x: from.features, out }, { rows: count, cols, ...window, label: "draft.hidden" })
    : carried(draft, from, of, second);
  return [
    ...embed(
      { matrix: weights.embed, rows, out: wide },
      { count, outCols: 2 * cols, label: "draft.embed" },
    ),
    hidden,
    ...fc(draft, wide, count),
  ];
}

/** x = fc(input) + bias. */
function fc({ weights, scratch, tuning, config }: Draft, input: Operand, rows: number): Dispatch[] {
  const { x } = scratch;
  const finish = weights.fcBias ? "add" : "store";
  const bias = weights.fcBias
    ? [fillRows({ values: weights.fcBias, out: x }, {
      rows,
      cols: config.hiddenSize,
      label: "draft.fcBias",
    })]
    : [];
  const product = matmul(
    { matrix: weights.fc, x: input, out: x },
    { rows, finish, tuning, label: "draft.fc" },
  );
  return [...bias, ...product];
}

/** The draft's own hidden row of each lane's slot. */
function carried(
  { carry, config }: Draft,
  { lanes }: Lanes,
  { count }: RowsOf,
  to: { readonly out: Operand; readonly outCols?: number; readonly outFirst?: number },
): Dispatch {
  const { out, ...window } = to;
  return gatherRows(
    { x: carry, index: lanes, out },
    { rows: count, cols: config.hiddenSize, ...window, label: "draft.carried" },
  );
}

/**
 * Draft token `step` of each lane, and the hidden row that the next level carries on from.
 *
 * @param shape.last row of `scratch.x` of each lane, [batch]; absent: lane b is row b.
 * @param shape.carry whether a further level follows.
 */
export function draftHead(
  draft: Draft,
  { lanes }: Lanes,
  shape: {
    readonly batch: number;
    readonly step: number;
    readonly last?: Operand;
    readonly carry: boolean;
  },
): Dispatch[] {
  const { weights, ends, scratch, logits, tuning, config: { hiddenSize: cols } } = draft;
  const { batch, step, last } = shape;
  const x = last ? ends : scratch.x;
  const from = weights.norms ? scratch.normed : x;
  return [
    ...last
      ? [gatherRows({ x: scratch.x, index: last, out: ends }, {
        rows: batch,
        cols,
        label: "draft.ends",
      })]
      : [],
    ...shape.carry
      ? [scatterRows({ x, index: lanes, out: draft.carry }, {
        rows: batch,
        cols,
        label: "draft.carry",
      })]
      : [],
    ...weights.norms
      ? [norm(draft, { x, weight: weights.norms.final, out: scratch.normed }, batch, "draft.norm")]
      : [],
    ...matmul(
      { matrix: weights.head, x: from, out: logits },
      { rows: batch, finish: "store", tuning, label: "draft.head" },
    ),
    draftChoose({ logits, offsets: weights.offsets, lanes, drafts: draft.drafts }, {
      batch,
      vocab: draft.draft.draftVocabSize,
      stride: weights.head.rows,
      step,
      lanes: tuning.rowLanes,
    }),
  ];
}

/** Width of the features a draft-extend reads, f32 a row. */
export function featureWidth(draft: DraftConfig, target: ModelConfig): number {
  return draft.algorithm === "EAGLE3" ? 3 * target.hiddenSize : target.hiddenSize;
}
