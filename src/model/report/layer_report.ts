/** What `eyrie inspect` reports of the kinds of layers a model has. */
import type { Checkpoint } from "../files/checkpoint_type.ts";
import type { ModelConfig } from "../config/types.ts";
import {
  type AttentionSpec,
  type CachedAttention,
  type HeadAttention,
  isRecurrent,
} from "../config/layer_config.ts";
import type { Rope } from "../config/rope_config.ts";

/** Layers that have something in common. */
export interface LayerSet {
  readonly layers: number;
  /** Their places, from 0. */
  readonly indices: readonly number[];
}

/** Layers with one kind of attention, or of recurrence in its place. */
export interface LayerKind extends LayerSet {
  readonly kind: "attention" | "latent_attention" | "gated_deltanet" | "short_convolution";
}

/** A rotary embedding and the layers that use it. */
export interface RopeReport extends Rope, LayerSet {}

/** Layers after the last that draft: NextN, which others call multi-token prediction (MTP). */
export interface NextnReport {
  readonly layers: number;
  /** Whether the checkpoint has their tensors: exports of fine-tuned and quantized models often do not. */
  readonly inCheckpoint: boolean;
}

/** Heads of an attention. */
export interface HeadReport {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly qkNorm: HeadAttention["qkNorm"];
  /** Whether the attention's output is multiplied by a function of a projection of its input. */
  readonly outputGate: boolean;
  /** Whether the softmax of each head has an additional logit without a value. */
  readonly attentionSinks: boolean;
  /** The latent that is stored per token instead of keys and values of heads; null if there is none. */
  readonly latent: LatentReport | null;
}

/** Layers whose heads are not those of the first layer. */
export interface OtherHeads {
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
}

/** Mixtures of experts. */
export interface ExpertReport {
  /** Layers that are mixtures. */
  readonly layers: number;
  readonly count: number;
  readonly chosen: number;
  readonly intermediateSize: number;
  /** Width of the shared expert, null if there is none. */
  readonly sharedIntermediateSize: number | null;
}

/** Latents of multi-head latent attention. */
export interface LatentReport {
  readonly rank: number;
  /** Width of the rotated key that is stored with it. */
  readonly ropeDim: number;
}

const KINDS: Readonly<Record<AttentionSpec["kind"], LayerKind["kind"]>> = {
  heads: "attention",
  latent: "latent_attention",
  delta: "gated_deltanet",
  conv: "short_convolution",
};

/** Counts the layers of each kind, in the order of their first layers. */
export function layerKinds(config: ModelConfig): readonly LayerKind[] {
  const kinds = new Set(config.layers.map(({ attention }) => attention.kind));
  return [...kinds].map((kind) => ({
    kind: KINDS[kind],
    ...layersWith(config, (attention) => attention.kind === kind),
  }));
}

/** Reports the rotary embeddings that layers use: a config may list one that none does. */
export function ropeReports(config: ModelConfig): readonly RopeReport[] {
  return config.ropes
    .map((rope, place) => ({
      ...rope,
      ...layersWith(config, (attention) => !isRecurrent(attention) && attention.rope === place),
    }))
    .filter(({ layers }) => layers > 0);
}

function layersWith(
  { layers }: ModelConfig,
  isMeant: (attention: AttentionSpec) => boolean,
): LayerSet {
  const indices = layers.flatMap(({ attention }, i) => isMeant(attention) ? [i] : []);
  return { layers: indices.length, indices };
}

/** Reports the layers that NEXTN drafts with; null if the architecture has none. */
export function nextnReport(
  { tensors }: Pick<Checkpoint, "tensors">,
  { layers, nextnLayers = 0, mtp = false }: ModelConfig,
): NextnReport | null {
  if (mtp) return { layers: 1, inCheckpoint: tensors.has("mtp.fc.weight") };
  if (nextnLayers === 0) return null;
  const prefix = `model.layers.${layers.length}.`;
  const inCheckpoint = tensors.keys().some((name) => name.startsWith(prefix));
  return { layers: nextnLayers, inCheckpoint };
}

export function headReport(
  attention: CachedAttention,
): HeadReport {
  const { numHeads: heads } = attention;
  if (attention.kind === "heads") {
    const { numKvHeads: kvHeads, headDim, qkNorm } = attention;
    const { outputGate: gate, sinks: attentionSinks = false } = attention;
    const outputGate = gate !== undefined;
    return { heads, kvHeads, headDim, qkNorm, outputGate, attentionSinks, latent: null };
  }
  const { nopeDim, ropeDim, rank } = attention;
  const headDim = nopeDim + ropeDim;
  return {
    heads,
    kvHeads: heads,
    headDim,
    qkNorm: "none",
    outputGate: false,
    attentionSinks: false,
    latent: { rank, ropeDim },
  };
}

/** Reports each other kind of heads, in the order of their first layers. */
export function otherHeads({ layers }: ModelConfig): readonly OtherHeads[] {
  const kinds = Map.groupBy(
    layers.flatMap(({ attention }) => isRecurrent(attention) ? [] : [headReport(attention)]),
    ({ heads, kvHeads, headDim }) => `${heads} ${kvHeads} ${headDim}`,
  );
  return [...kinds.values()].slice(1).flatMap((alike) => {
    const [first] = alike;
    if (first === undefined) return [];
    const { heads, kvHeads, headDim } = first;
    return [{ layers: alike.length, heads, kvHeads, headDim }];
  });
}

/** Counts the layers that read keys and values of an earlier one. */
export function sharingLayers({ layers }: ModelConfig): number {
  return layers.filter(({ attention }) =>
    attention.kind === "heads" && attention.sharedKv !== undefined
  ).length;
}

/** Reports the first mixture; null if there is none. */
export function expertReport({ layers }: ModelConfig): ExpertReport | null {
  const mixtures = layers.flatMap(({ mlp }) => mlp.kind === "mixture" ? [mlp] : []);
  const [first] = mixtures;
  if (first === undefined) return null;
  return {
    layers: mixtures.length,
    count: first.routing.numExperts,
    chosen: first.routing.topK,
    intermediateSize: first.intermediateSize,
    sharedIntermediateSize: first.shared?.intermediateSize ?? null,
  };
}
