import { isSliding, layerCount, MAX, size, slidingWindow } from "../decoder_config.ts";
import {
  expect,
  type Fields,
  integers,
  positive,
  quote,
  unusable,
  value,
} from "../../files/fields.ts";
import type { HeadAttention, MlpSpec, OutputGate } from "../layer_config.ts";
import { isDense, parseMixture } from "../mixture_config.ts";
import { FULL, type Rope, ropesByLayerType, SLIDING } from "../rope_config.ts";
import { llamaNamesBut } from "../tensor_names.ts";
import type { BaseLayer, Family } from "../types.ts";

/** Rope parameters if config.json has none. */
const ROPES = {
  full_attention: { rope_type: "default", rope_theta: 500_000, partial_rotary_factor: 0.5 },
  sliding_attention: { rope_type: "default", rope_theta: 10_000, partial_rotary_factor: 1 },
};

/**
 * Laguna: full and sliding layers have ropes of their own, and layers may have different numbers of query heads. The
 * output of attention is multiplied by softplus gates. Mixtures have a shared expert and route by sigmoid with a
 * correction bias. Source: LagunaModel of transformers.
 */
export const LAGUNA: Family = {
  architecture: "LagunaForCausalLM",
  modelType: "laguna",
  partialRope: true,
  // As transformers' LagunaConfig.
  defaults: {
    vocab_size: 100_352,
    hidden_size: 2048,
    intermediate_size: 8192,
    num_hidden_layers: 40,
    num_attention_heads: 48,
    num_key_value_heads: 8,
    head_dim: 128,
    max_position_embeddings: 131_072,
    sliding_window: 512,
    gating: true,
    num_experts: 256,
    num_experts_per_tok: 8,
    moe_intermediate_size: 512,
    shared_expert_intermediate_size: 512,
    moe_routed_scaling_factor: 1,
    moe_router_logit_softcapping: 0,
  },
  layer: (config, base, i) => ({
    attention: attention(config, base.attention, i),
    mlp: isDense(config, i) ? base.mlp : mixture(config, base),
    norms: "before",
  }),
  ropes,
  names: llamaNamesBut({
    outputGate: "self_attn.g_proj",
    routerBias: "mlp.experts.e_score_correction_bias",
    sharedGate: "mlp.shared_expert.gate_proj",
    sharedUp: "mlp.shared_expert.up_proj",
    sharedDown: "mlp.shared_expert.down_proj",
  }),
};

function attention(config: Fields, base: HeadAttention, i: number): HeadAttention {
  // transformers does not read this key; a file with sinks would be computed without them.
  expect(config, "swa_attention_sink_enabled", false);
  const local = isLocal(config, i);
  const rope = local ? SLIDING : FULL;
  const width = ropes(config, base.headDim)[rope]?.width ?? base.headDim;
  return {
    ...base,
    numHeads: queryHeads(config, base, i),
    qkNorm: "head",
    outputGate: outputGate(config),
    window: local ? slidingWindow(config) : undefined,
    rope,
    ...width < base.headDim ? { turned: width } : {},
  };
}

function isLocal(config: Fields, i: number): boolean {
  return isSliding(config, i, false);
}

/** Query heads of layer `i`: by `num_attention_heads_per_layer`, where there is one. */
function queryHeads(config: Fields, { numHeads, numKvHeads }: HeadAttention, i: number): number {
  const key = "num_attention_heads_per_layer";
  const all = integers(config, key, MAX.heads);
  if (all === undefined) return numHeads;
  const own = all[i] ?? 0;
  if (all.length === layerCount(config) && own > 0 && own % numKvHeads === 0) return own;
  const wanted = `for each of ${layerCount(config)} layers a multiple of the ${numKvHeads}`;
  throw unusable(config, `has ${key} ${quote(all)}, expected ${wanted} key/value heads`);
}

function outputGate(config: Fields): OutputGate {
  const gating = value(config, "gating");
  if (gating === true || gating === "per-head") return { gating: "softplus", per: "head" };
  if (gating === "per-element") return { gating: "softplus", per: "element" };
  throw unusable(config, `has gating ${quote(gating)}, known are true, "per-head", "per-element"`);
}

function mixture(config: Fields, base: BaseLayer): MlpSpec {
  expect(config, "moe_apply_router_weight_on_input", false);
  // transformers does not read these keys: it always divides sigmoid scores by their sum.
  expect(config, "moe_router_use_sigmoid", true);
  expect(config, "norm_topk_prob", true);
  const keys = { experts: "num_experts", size: "moe_intermediate_size" };
  const mlp = parseMixture(config, base, keys, {
    scores: "sigmoid",
    scale: positive(config, "moe_routed_scaling_factor"),
  });
  const cap = "moe_router_logit_softcapping";
  const intermediateSize = size(config, "shared_expert_intermediate_size", MAX.intermediate);
  return {
    ...mlp,
    shared: { ...base.mlp, intermediateSize },
    ...value(config, cap) === 0 ? {} : { logitCap: positive(config, cap) },
  };
}

function ropes(config: Fields, headDim: number): readonly Rope[] {
  const layers = Array.from({ length: layerCount(config) }, (_, i) => ({
    sliding: isLocal(config, i),
    headDim,
  }));
  return ropesByLayerType(config, layers, ROPES);
}
