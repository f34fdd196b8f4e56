import type { Family } from "../types.ts";

/** OLMo-2: branches are normed after, not before; q and k over their whole width. */
export const OLMO2: Family = {
  architecture: "Olmo2ForCausalLM",
  modelType: "olmo2",
  defaults: { rms_norm_eps: 1e-5 },
  layer: (_, { attention, mlp }) => ({
    attention: { ...attention, qkNorm: "whole" },
    mlp,
    norms: "after",
  }),
};
