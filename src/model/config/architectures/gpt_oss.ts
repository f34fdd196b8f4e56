import { isSliding, slidingWindow } from "../decoder_config.ts";
import { expect, flag } from "../../files/fields.ts";
import { parseMixture } from "../mixture_config.ts";
import { parseRope } from "../rope_config.ts";
import { llamaNamesBut } from "../tensor_names.ts";
import type { Family } from "../types.ts";
import { withRope } from "./mistral.ts";

/** What transformers assumes where config.json has no rope. The base is `rope_theta` nevertheless. */
const ROPE = {
  rope_type: "yarn",
  factor: 32,
  beta_fast: 32,
  beta_slow: 1,
  truncate: false,
  original_max_position_embeddings: 4096,
};

/** Gate and up are clamped to this. transformers does not read it from the config's `swiglu_limit`. */
const LIMIT = 7;

/**
 * gpt-oss: a window on every other layer, sinks, biases everywhere, and a mixture of clamped SwiGLUs in every layer.
 */
export const GPT_OSS: Family = {
  architecture: "GptOssForCausalLM",
  modelType: "gpt_oss",
  biases: ["attention_bias"],
  defaults: {
    max_position_embeddings: 131_072,
    rms_norm_eps: 1e-5,
    rope_theta: 150_000,
    head_dim: 64,
    num_key_value_heads: 8,
    sliding_window: 128,
    attention_bias: true,
    num_local_experts: 128,
    num_experts_per_tok: 4,
  },
  layer(config, base, i) {
    expect(config, "swiglu_limit", LIMIT);
    const bias = flag(config, "attention_bias", true);
    const window = isSliding(config, i, i % 2 === 0) ? slidingWindow(config) : undefined;
    const keys = { experts: "num_local_experts", size: "intermediate_size" };
    return {
      attention: { ...base.attention, window, bias, outBias: bias, sinks: true },
      // Softmax over the chosen is softmax over all, divided by the sum of the chosen.
      mlp: { ...parseMixture(config, base, keys), interleavedGate: { limit: LIMIT } },
      norms: "before",
    };
  },
  ropes: (config, headDim) => [parseRope(withRope(config, ROPE), headDim)],
  names: llamaNamesBut({ router: "mlp.router" }),
};
