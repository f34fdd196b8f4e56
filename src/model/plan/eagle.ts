import { UsageError } from "../../errors.ts";
import type { Dispatch, Operand } from "../../gpu/kernel.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import type { TensorInfo } from "../files/safetensors.ts";
import type { DraftConfig, ModelConfig } from "../config/types.ts";
import { draftEnds } from "../../../kernels/round/round.ts";
import type { NormInput } from "../../../kernels/norm/rms_norm.ts";
import { splitKOf } from "../../../kernels/matmul/matmul_shape.ts";
import { attentionBlock, type Block, type DecoderLayer, loadLayer, mlpBlock } from "./decoder.ts";
import { type End, type RowsOf, scalesOf } from "./decoder_context.ts";
import type { Draft, DraftWeights, Features, HiddenRows } from "./draft_types.ts";
import type { BranchInput } from "./branch_input.ts";
import { projectHeads } from "./head_attention.ts";
import { eagle1Input, eagle3Input, nextnInput } from "./draft_input.ts";
import { byRole, type TargetWeights } from "./target.ts";
import type { LayerConfig } from "../config/layer_config.ts";
import { draftTensors } from "../weights/tensors.ts";
import type { Loader } from "../weights/loader.ts";

/** Loads an EAGLE head. The tensors were checked before (checkTensors). */
export function loadDraft(
  load: Loader,
  checkpoint: Pick<Checkpoint, "name" | "tensors" | "read">,
  config: DraftConfig,
  target: Pick<TargetWeights, "embed" | "head">,
): DraftWeights {
  const specs = draftTensors(config);
  const tensor = byRole(checkpoint, specs);
  const vector = (role: string) => load.vector(`draft.${role}`, tensor(role));
  const matrix = (role: string) => load.matrix(`draft.${role}`, [tensor(role)]);
  const offsets = () =>
    config.reducedVocab
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
    offsets: load.ids("d2t", config.draftVocabSize, offsets),
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
  return loadLayer(source, layer.layers[0] as LayerConfig, layer);
}

/**
 * Reads d2t, I64 or I32 [draft vocab]: offsets, so draft id i is target id i + d2t[i].
 *
 * @throws UsageError where an id would leave the target's vocabulary.
 */
export function readOffsets(
  checkpoint: Pick<Checkpoint, "name" | "read">,
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
 * One draft forward over rows whose token is one ahead of their hidden row, as far as all of them are needed: their keys
 * and values are stored. With latents it goes on to the end, and leaves the hidden rows in `scratch.x`.
 */
export function draftBody(draft: Draft, of: RowsOf, from: Features | HiddenRows): Dispatch[] {
  const { attention: weights } = draft.weights.layer;
  if (weights.kind === "latent") return draftForward(draft, of, from, "x").plan;
  const { plan, branch } = entered(draft, of, from);
  const kept = { weights, kv: draft.kv, label: LABEL };
  return [...plan, ...projectHeads(draft, kept, branch, of)];
}

/** Rows whose next token is wanted, behind what makes their hidden rows. */
export interface DraftEnds {
  readonly plan: Dispatch[];
  /** The draft whose `scratch.x` has the hidden rows, where `stream` does not say it. */
  readonly draft: Draft;
  /** As in `DraftEnd`. */
  readonly last?: Operand;
  readonly stream?: NormInput;
}

/** What `draftBody` left to do for the last row of each of `batch` sequences: attention and MLP. */
export function draftLast(
  draft: Draft,
  { rows, last }: { readonly rows: Operand; readonly last: Operand },
  batch: number,
): DraftEnds {
  const { attention } = draft.weights.layer;
  if (attention.kind === "latent") return { plan: [], draft, last };
  const { spec: { numHeads, headDim } } = attention;
  const { scratch: { q, x, scales }, ends, config: { hiddenSize: cols } } = draft;
  const lowered = scales && scalesOf(draft, "attentionOutput", batch, Infinity);
  const gathered = draftEnds({ last, all: { rows, q, x }, ends, lowered }, {
    batch,
    qCols: numHeads * headDim,
    cols,
  });
  const own = { ...draft, scratch: { ...draft.scratch, x: ends.x, q: ends.q } };
  const { plan, stream } = layerForward(own, {
    of: { rows: ends.rows, count: batch, perSlot: 1 },
    // The heads are stored, so x is not multiplied: its scales only tell that later rows' are noted.
    branch: { x: ends.x, stream: ends.x, xScales: scales?.normed },
    end: lastEnd(draft),
    stored: true,
  });
  return { plan: [gathered, ...plan], draft: own, stream };
}

/**
 * One draft forward over rows for all of which the next token is wanted. Other bits than `draftBody` gives are
 * other drafts, at worst.
 */
export function draftLevel(draft: Draft, of: RowsOf, from: Features | HiddenRows): Block {
  return draftForward(draft, of, from, lastEnd(draft));
}

/** Where the last matmul fills the GPU better in ranges of k, their sums are left to the norm before the head. */
function lastEnd({ weights: { layer: { mlp, norms }, finalNorm }, tuning }: Draft): End {
  const ranges = mlp.kind === "dense" && splitKOf(mlp.down, tuning) > 1;
  const normed = finalNorm !== undefined && norms.mlp === undefined;
  return ranges && normed ? "sums" : "x";
}

function draftForward(
  draft: Draft,
  of: RowsOf,
  from: Features | HiddenRows,
  end: End,
): Block {
  const { plan: before, branch } = entered(draft, of, from);
  const { plan, stream } = layerForward(draft, { of, branch, end });
  return { plan: [...before, ...plan], stream };
}

/** What the attention reads, and what makes it. */
function entered(draft: Draft, of: RowsOf, from: Features | HiddenRows): {
  readonly plan: Dispatch[];
  readonly branch: BranchInput;
} {
  const { input, attended } = entry(draft);
  const { plan, ...known } = input(draft, of, from);
  return { plan, branch: { x: attended, stream: draft.scratch.x, ...known } };
}

/** The draft's decoder layer. */
function layerForward(
  draft: Draft,
  { of, branch, end, stored }: {
    readonly of: RowsOf;
    readonly branch: BranchInput;
    readonly end: End;
    /** As in `headAttention`. */
    readonly stored?: boolean;
  },
): Block {
  const layer = { ...draft.weights.layer, kv: draft.kv, label: LABEL };
  const attention = attentionBlock(draft, layer, branch, of, stored);
  return mlpBlock(draft, layer, { before: attention, rows: of.count, end });
}

/** Of the draft's layer. */
const LABEL = "draft";

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

/** Width of the features a draft-extend reads, f32 a row. */
export function featureWidth(draft: DraftConfig, target: ModelConfig): number {
  return draft.algorithm === "EAGLE3" ? 3 * target.hiddenSize : target.hiddenSize;
}
