import { slidingWindow } from "../decoder_config.ts";
import type { Family } from "../types.ts";

/** Mistral 7B: Llama with a window on every layer; null (since v0.2) is none. */
export const MISTRAL: Family = {
  architecture: "MistralForCausalLM",
  modelType: "mistral",
  defaults: { max_position_embeddings: 131072, num_key_value_heads: 8, sliding_window: 4096 },
  layer: (config, { attention, mlp }) => ({
    attention: { ...attention, window: slidingWindow(config) },
    mlp,
    norms: "before",
  }),
};
