import assert from "node:assert/strict";
import type { DenseMlp, HeadAttention, LayerConfig } from "../../src/model/config/layer_config.ts";

/** A layer with keys and values a head and a plain MLP; anything else fails. */
export function denseLayer(
  layer: LayerConfig | undefined,
): LayerConfig & { readonly attention: HeadAttention; readonly mlp: DenseMlp } {
  assert.ok(layer);
  const { attention, mlp, norms } = layer;
  assert.ok(attention.kind === "heads" && mlp.kind === "dense");
  return { attention, mlp, norms };
}
