import { type BaseLayer, type Family, isSliding, slidingWindow } from "../decoder_config.ts";
import { type Fields, flag, integer } from "../fields.ts";
import type { LayerSpec } from "../layer_spec.ts";

const DEFAULTS = {
  max_position_embeddings: 32768,
  sliding_window: 4096,
  max_window_layers: 28,
};

/** Qwen2 and Qwen2.5: Llama with a bias on q, k and v. */
export const QWEN2: Family = {
  architecture: "Qwen2ForCausalLM",
  modelType: "qwen2",
  defaults: DEFAULTS,
  layer: (config, base, i) => windowed(config, base, i, { bias: true }),
};

/** Qwen3: Llama with RMSNorm over each head of q and k. */
export const QWEN3: Family = {
  architecture: "Qwen3ForCausalLM",
  modelType: "qwen3",
  defaults: { ...DEFAULTS, head_dim: 128 },
  layer: (config, base, i) => windowed(config, base, i, { qkNorm: "head" }),
};

/** With `use_sliding_window`, layers from `max_window_layers` on have a window. */
function windowed(
  config: Fields,
  { attention, mlp }: BaseLayer,
  i: number,
  own: Partial<BaseLayer["attention"]>,
): LayerSpec {
  const most = integer(config, "max_window_layers", { least: 0, most: 2 ** 20 });
  const slides = flag(config, "use_sliding_window", false) && isSliding(config, i, i >= most);
  const window = slides ? slidingWindow(config) : undefined;
  return { attention: { ...attention, window, ...own }, mlp, norms: "before" };
}
