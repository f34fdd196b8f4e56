import { slidingWindow } from "../decoder_config.ts";
import type { Family } from "../types.ts";
import { llamaNamesBut } from "../tensor_names.ts";

/** Phi-3, Phi-3.5 and Phi-4-mini: fused matrices; a part of each head is turned (rope_config.ts). */
export const PHI3: Family = {
  architecture: "Phi3ForCausalLM",
  modelType: "phi3",
  partialRope: true,
  defaults: {
    max_position_embeddings: 4096,
    original_max_position_embeddings: 4096,
    rms_norm_eps: 1e-5,
  },
  layer: (config, { attention, mlp }) => ({
    attention: { ...attention, window: slidingWindow(config) },
    mlp,
    norms: "before",
  }),
  names: llamaNamesBut({
    q: "self_attn.qkv_proj",
    k: "self_attn.qkv_proj",
    v: "self_attn.qkv_proj",
    gate: "mlp.gate_up_proj",
    up: "mlp.gate_up_proj",
  }),
};
