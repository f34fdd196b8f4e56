import { positive } from "../../files/fields.ts";
import type { Family } from "../types.ts";

/** Granite 3 and 4.1, without Mamba layers: Llama with multipliers of the embedding, scores, branches and logits. */
export const GRANITE: Family = {
  architecture: "GraniteForCausalLM",
  modelType: "granite",
  defaults: {
    embedding_multiplier: 1,
    attention_multiplier: 1,
    residual_multiplier: 1,
    logits_scaling: 1,
  },
  layer: (config, { attention, mlp }) => ({
    attention: { ...attention, scale: positive(config, "attention_multiplier") },
    mlp,
    norms: "before",
  }),
  model: (config) => ({
    embedScale: positive(config, "embedding_multiplier"),
    residualScale: positive(config, "residual_multiplier"),
    logitScale: 1 / positive(config, "logits_scaling"),
  }),
};
