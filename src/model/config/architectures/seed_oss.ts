import { flag } from "../../files/fields.ts";
import type { Family } from "../types.ts";

/** Seed-OSS: Llama whose q, k and v may have a bias. */
export const SEED_OSS: Family = {
  architecture: "SeedOssForCausalLM",
  modelType: "seed_oss",
  biases: ["attention_bias"],
  defaults: {
    max_position_embeddings: 524_288,
    num_key_value_heads: 8,
    attention_bias: true,
    head_dim: 128,
  },
  layer: (config, { attention, mlp }) => ({
    attention: { ...attention, bias: flag(config, "attention_bias", true) },
    mlp,
    norms: "before",
  }),
};
