/** What `eyrie inspect` reports of the kinds of layers a model has. */
import type { ModelConfig } from "../config/types.ts";
import { type CachedAttention, type HeadAttention, isRecurrent } from "../config/layer_config.ts";

/** Heads of an attention. */
export interface HeadReport {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly qkNorm: HeadAttention["qkNorm"];
  /** What is kept of a token instead of keys and values of heads. */
  readonly latent: LatentReport | null;
}

/** Layers whose heads are not those of the first layer. */
export interface OtherHeads {
  readonly layers: number;
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

export function headReport(
  attention: CachedAttention,
): HeadReport {
  const { numHeads: heads } = attention;
  if (attention.kind === "heads") {
    const { numKvHeads: kvHeads, headDim, qkNorm } = attention;
    return { heads, kvHeads, headDim, qkNorm, latent: null };
  }
  const { nopeDim, ropeDim, rank } = attention;
  const headDim = nopeDim + ropeDim;
  return { heads, kvHeads: heads, headDim, qkNorm: "none", latent: { rank, ropeDim } };
}

/** Reports each other kind of heads, in the order of their first layers. */
export function otherHeads({ layers }: ModelConfig): readonly OtherHeads[] {
  const kinds = Map.groupBy(
    layers.flatMap(({ attention }) => isRecurrent(attention) ? [] : [headReport(attention)]),
    (heads) => `${heads.kvHeads} ${heads.headDim}`,
  );
  return [...kinds.values()].slice(1).flatMap((alike) => {
    const [first] = alike;
    return first ? [{ layers: alike.length, kvHeads: first.kvHeads, headDim: first.headDim }] : [];
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
