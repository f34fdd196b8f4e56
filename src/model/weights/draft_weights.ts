/** Weights of drafts: of EAGLE heads, NextN layers, and causal models that draft for a target. */
import { UsageError } from "../../errors.ts";
import type { Operand } from "../../gpu/kernel.ts";
import type { Matrix, Table } from "../../gpu/matrix.ts";
import type { LayerConfig } from "../config/layer_config.ts";
import type { DraftConfig, ModelConfig, StandaloneConfig } from "../config/types.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import type { TensorInfo } from "../files/safetensors.ts";
import { type DecoderLayer, loadLayer } from "./layer_weights.ts";
import type { Loader } from "./loader.ts";
import { byRole, loadTarget, type TargetWeights } from "./target_weights.ts";
import { draftTensors, readIds } from "./tensors.ts";

/** Weights of an EAGLE head or a NextN layer; weights that it lacks are undefined, or the target's. */
export interface DraftWeights {
  /** [vocab, hidden]; the target's where the checkpoint has none. */
  readonly embed: Table;
  /** EAGLE: [hidden, 2 hidden] over (embedding, hidden). EAGLE-3: [hidden, 3 target hidden]. */
  readonly fc: Matrix;
  readonly fcBias: Operand | undefined;
  readonly layer: DecoderLayer;
  /** EAGLE-3: norms of the embedding and of the hidden row. */
  readonly norms: { readonly input: Operand; readonly hidden: Operand } | undefined;
  /** NEXTN: the norm of the layer's input. */
  readonly layerNorm: Operand | undefined;
  /** EAGLE-3, NEXTN: the norm before the head. */
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
  checkpoint: Pick<Checkpoint, "name" | "tensors" | "read">,
  config: DraftConfig,
  target: Pick<TargetWeights, "embed" | "head">,
): DraftWeights {
  const specs = draftTensors(config);
  const tensor = byRole(checkpoint, specs);
  const vector = (role: string) => load.vector(`draft.${role}`, tensor(role));
  const norm = (role: string) => load.norm(`draft.${role}`, config.layer.normOffset, tensor(role));
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
      ? { input: norm("layers.0.inputNorm"), hidden: norm("layers.0.hiddenNorm") }
      : undefined,
    layerNorm: config.algorithm === "NEXTN" ? norm("layers.0.inputNorm") : undefined,
    finalNorm: config.algorithm === "EAGLE" ? undefined : norm("norm"),
    inputNorms: specs.map(({ role }) => role).filter((role) => role.startsWith("inputNorms."))
      .map(norm),
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
  return Int32Array.from(readIds(checkpoint, tensor), (offset, i) => {
    const id = i + offset;
    if (id >= 0 && id < config.layer.vocabSize) return offset;
    throw new UsageError(
      `Cannot use "${checkpoint.name}/${tensor.file}": tensor "${tensor.name}" maps draft ` +
        `token ${i} to ${id}, the vocabulary has ${config.layer.vocabSize}`,
    );
  });
}

export interface StandaloneWeights {
  readonly model: TargetWeights;
  /** Target id minus draft id: zeros, i32 [draft vocab]. */
  readonly offsets: Operand;
}

/** Loads a STANDALONE draft the way a target is loaded. The tensors were checked before (checkDraft). */
export function* loadStandalone(
  load: Loader,
  checkpoint: Pick<Checkpoint, "name" | "tensors">,
  { layer, draftVocabSize }: StandaloneConfig,
): Generator<void, StandaloneWeights> {
  const offsets = load.ids("draft.offsets", draftVocabSize, () => new Int32Array(draftVocabSize));
  return { model: yield* loadTarget(load, checkpoint, layer), offsets };
}

/** How many f32 per row the features have that a draft-extend reads. */
export function featureWidth(draft: DraftConfig, target: ModelConfig): number {
  return draft.algorithm === "EAGLE3" ? 3 * target.hiddenSize : target.hiddenSize;
}
