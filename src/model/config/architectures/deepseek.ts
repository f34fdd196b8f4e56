import { MAX, size } from "../decoder_config.ts";
import type { BaseLayer, Family } from "../types.ts";
import {
  expect,
  type Fields,
  flag,
  integer,
  positive,
  quote,
  unusable,
  value,
} from "../../files/fields.ts";
import type { LatentAttention, MixtureMlp, MlpSpec } from "../layer_config.ts";
import { isDense, parseMixture } from "../mixture_config.ts";
import { parseRope, ropeFields, ropeKind, yarnScale } from "../rope_config.ts";
import type { Routing } from "../../../../kernels/experts/route.ts";

const DEFAULTS = {
  // These models have no head_dim, and it is not used: heads have three sizes of their own.
  head_dim: 64,
  kv_lora_rank: 512,
  q_lora_rank: 1536,
  qk_nope_head_dim: 128,
  qk_rope_head_dim: 64,
  v_head_dim: 128,
  routed_scaling_factor: 1,
  moe_layer_freq: 1,
};

/** DeepSeek-V2 and V2-Lite: latent attention; experts by softmax, where asked for in groups. */
export const DEEPSEEK_V2: Family = {
  architecture: "DeepseekV2ForCausalLM",
  modelType: "deepseek_v2",
  defaults: { ...DEFAULTS, first_k_dense_replace: 0, topk_method: "greedy" },
  ropes: (config) => [parseRope(config, ropeDim(config))],
  layer: (config, base, i) => ({
    attention: parseLatent(config, base, true),
    mlp: parseMlp(config, base, i, routingV2),
    norms: "before",
  }),
};

/** DeepSeek-V3, R1 and Moonlight: experts by sigmoid and a bias that balances their load. */
export const DEEPSEEK_V3: Family = {
  architecture: "DeepseekV3ForCausalLM",
  modelType: "deepseek_v3",
  defaults: {
    ...DEFAULTS,
    max_position_embeddings: 4096,
    first_k_dense_replace: 3,
    n_routed_experts: 256,
    num_experts_per_tok: 8,
    n_shared_experts: 1,
    n_group: 8,
    topk_group: 4,
    routed_scaling_factor: 2.5,
    norm_topk_prob: true,
    scoring_func: "sigmoid",
    topk_method: "noaux_tc",
  },
  ropes: DEEPSEEK_V2.ropes as NonNullable<Family["ropes"]>,
  layer: (config, base, i) => ({
    attention: parseLatent(config, base, flag(config, "rope_interleave", true)),
    mlp: parseMlp(config, base, i, routingV3),
    norms: "before",
  }),
  model: (config) => ({
    nextnLayers: integer(config, "num_nextn_predict_layers", { min: 0, max: 16, fallback: 0 }),
  }),
};

/** GLM-4.7-Flash: DeepSeek-V3 without groups of experts. The first layer is dense, or those that a list names. */
export const GLM4_MOE_LITE: Family = {
  ...DEEPSEEK_V3,
  architecture: "Glm4MoeLiteForCausalLM",
  modelType: "glm4_moe_lite",
  partialRope: true,
  defaults: {
    ...DEEPSEEK_V3.defaults,
    max_position_embeddings: 202_752,
    rms_norm_eps: 1e-5,
    n_routed_experts: 64,
    num_experts_per_tok: 4,
    n_group: 1,
    topk_group: 1,
    routed_scaling_factor: 1.8,
    q_lora_rank: 768,
    qk_nope_head_dim: 192,
    v_head_dim: 256,
  },
  layer: (config, base, i) => ({
    attention: parseLatent(config, base, flag(config, "rope_interleave", true)),
    mlp: parseMlp(config, base, i, routingV3, isDense),
    norms: "before",
  }),
};

export function ropeDim(config: Fields): number {
  return size(config, "qk_rope_head_dim", MAX.headDim);
}

export function parseLatent(
  config: Fields,
  { attention: { numHeads } }: BaseLayer,
  interleaved: boolean,
): LatentAttention {
  const nopeDim = size(config, "qk_nope_head_dim", MAX.headDim);
  return {
    kind: "latent",
    numHeads,
    nopeDim,
    ropeDim: ropeDim(config),
    valueDim: size(config, "v_head_dim", MAX.headDim),
    // Latent and rotated part together are one key for attention, so the limit is that of a head.
    rank: size(config, "kv_lora_rank", MAX.headDim - ropeDim(config)),
    queryRank: value(config, "q_lora_rank") === undefined
      ? undefined
      : size(config, "q_lora_rank", MAX.hidden),
    scale: attentionScale(config) / Math.sqrt(nopeDim + ropeDim(config)),
    interleaved,
    window: undefined,
    rope: 0,
  };
}

/** m(mscale_all_dim)^2 if the rope is scaled: it makes attention sharper. */
function attentionScale(config: Fields): number {
  const inside = ropeFields(config);
  if (!inside || !value(inside, "mscale_all_dim")) return 1;
  if ((ropeKind(inside) ?? "default") === "default") return 1;
  return yarnScale(positive(inside, "factor", 1), positive(inside, "mscale_all_dim")) ** 2;
}

/** Layers are dense, by default the first ones, or mixtures with a shared expert. */
export function parseMlp(
  config: Fields,
  base: BaseLayer,
  i: number,
  routing: (config: Fields) => Partial<Routing>,
  isDenseLayer: (config: Fields, i: number) => boolean = isFirst,
): MlpSpec {
  expect(config, "moe_layer_freq", 1);
  if (isDenseLayer(config, i)) return base.mlp;
  const keys = { experts: "n_routed_experts", size: "moe_intermediate_size" };
  const mixture = parseMixture(config, base, keys, routing(config));
  return { ...mixture, shared: parseShared(config, base, mixture) };
}

function isFirst(config: Fields, i: number): boolean {
  return i < integer(config, "first_k_dense_replace", { min: 0, max: MAX.layers });
}

function parseShared(
  config: Fields,
  { mlp }: BaseLayer,
  { intermediateSize }: MixtureMlp,
): MixtureMlp["shared"] {
  const count = integer(config, "n_shared_experts", { min: 0, max: 64, fallback: 0 });
  return count > 0 ? { ...mlp, intermediateSize: count * intermediateSize } : undefined;
}

function routingV2(config: Fields): Partial<Routing> {
  expect(config, "scoring_func", "softmax");
  // transformers does not read norm_topk_prob, and DeepSeek's own code does not scale if it is true.
  expect(config, "norm_topk_prob", false);
  const method = value(config, "topk_method");
  const scale = positive(config, "routed_scaling_factor");
  if (method === "greedy") return { normalize: false, scale };
  if (method === "group_limited_greedy") return { ...groups(config), normalize: false, scale };
  const known = "known are greedy, group_limited_greedy";
  throw unusable(config, `has topk_method ${quote(method ?? null)}, ${known}`);
}

function routingV3(config: Fields): Partial<Routing> {
  expect(config, "scoring_func", "sigmoid");
  expect(config, "topk_method", "noaux_tc");
  return {
    scores: "sigmoid",
    ...groups(config),
    groupBest: 2,
    normalize: flag(config, "norm_topk_prob", true),
    scale: positive(config, "routed_scaling_factor"),
  };
}

export function groups(config: Fields): Pick<Routing, "groups" | "topGroups"> {
  const count = integer(config, "n_group", { min: 1, max: 256 });
  return { groups: count, topGroups: integer(config, "topk_group", { min: 1, max: count }) };
}
