/** What `eyrie inspect` reports of the kinds of layers a model has. */
import type { ModelConfig } from "../config/types.ts";
import type { CachedAttention, HeadAttention } from "../config/layer_config.ts";

/** Heads of an attention. */
export interface HeadReport {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly qkNorm: HeadAttention["qkNorm"];
  /** What is kept of a token instead of keys and values of heads. */
  readonly latent: LatentReport | null;
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
