import { isSliding, slidingWindow } from "../decoder_config.ts";
import type { BaseLayer, Family } from "../types.ts";
import { type Fields, flag, integer, integers, value } from "../../files/fields.ts";
import type { LayerConfig } from "../layer_config.ts";
import { parseMixture } from "../mixture_config.ts";

const DEFAULTS = {
  max_position_embeddings: 32768,
  sliding_window: 4096,
  max_window_layers: 28,
};

/** Qwen2 and Qwen2.5: Llama with a bias on q, k and v. */
export const QWEN2: Family = {
  architecture: "Qwen2ForCausalLM",
  modelType: "qwen2",
  // transformers does not read it: there is a bias, and none of o, whatever it says.
  biases: ["attention_bias"],
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

/** Qwen3-MoE: Qwen3 with a mixture of experts in every layer but those that the config names. */
export const QWEN3_MOE: Family = {
  architecture: "Qwen3MoeForCausalLM",
  modelType: "qwen3_moe",
  defaults: {
    ...DEFAULTS,
    decoder_sparse_step: 1,
    num_local_experts: 128,
    num_experts_per_tok: 8,
    moe_intermediate_size: 768,
  },
  layer(config, base, i) {
    // The window applies to all layers, whatever max_window_layers and layer_types say.
    const values = { ...config.values, max_window_layers: 0, layer_types: undefined };
    const layer = windowed({ ...config, values }, base, i, { qkNorm: "head" });
    if (!isSparse(config, i)) return layer;
    // transformers 5 writes num_local_experts.
    const experts = value(config, "num_experts") === undefined
      ? "num_local_experts"
      : "num_experts";
    const keys = { experts, size: "moe_intermediate_size" };
    const normalize = flag(config, "norm_topk_prob", false);
    return { ...layer, mlp: parseMixture(config, base, keys, { normalize }) };
  },
};

function isSparse(config: Fields, i: number): boolean {
  const step = integer(config, "decoder_sparse_step", { min: 1, max: 2 ** 20 });
  const dense = integers(config, "mlp_only_layers", 2 ** 20) ?? [];
  return !dense.includes(i) && (i + 1) % step === 0;
}

/** With `use_sliding_window`, layers from `max_window_layers` on have a window. */
function windowed(
  config: Fields,
  { attention, mlp }: BaseLayer,
  i: number,
  own: Partial<BaseLayer["attention"]>,
): LayerConfig {
  const max = integer(config, "max_window_layers", { min: 0, max: 2 ** 20 });
  const slides = flag(config, "use_sliding_window", false) && isSliding(config, i, i >= max);
  const window = slides ? slidingWindow(config) : undefined;
  return { attention: { ...attention, window, ...own }, mlp, norms: "before" };
}
