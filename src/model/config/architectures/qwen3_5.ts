import { MAX } from "../decoder_config.ts";
import {
  type Fields,
  flag,
  integer,
  integers,
  quote,
  unusable,
  value,
} from "../../files/fields.ts";
import type { DeltaNet, LayerConfig, MlpSpec } from "../layer_config.ts";
import { parseMixture } from "../mixture_config.ts";
import { parseRope } from "../rope_config.ts";
import { llamaNamesBut } from "../tensor_names.ts";
import type { BaseLayer, Family } from "../types.ts";
import type { Routing } from "../../../../kernels/experts/route.ts";

const DEFAULTS = {
  max_position_embeddings: 32_768,
  head_dim: 256,
  partial_rotary_factor: 0.25,
  full_attention_interval: 4,
  attn_output_gate: true,
  linear_conv_kernel_dim: 4,
  linear_key_head_dim: 128,
  linear_value_head_dim: 128,
  linear_num_key_heads: 16,
  linear_num_value_heads: 32,
};

const MIXTURE = {
  ...DEFAULTS,
  num_key_value_heads: 2,
  // Published configs of mixtures do not have this key.
  intermediate_size: 5632,
  decoder_sparse_step: 1,
  num_experts: 512,
  num_experts_per_tok: 10,
  moe_intermediate_size: 512,
  shared_expert_intermediate_size: 512,
};

const NAMES = llamaNamesBut({
  sharedGate: "mlp.shared_expert.gate_proj",
  sharedUp: "mlp.shared_expert.up_proj",
  sharedDown: "mlp.shared_expert.down_proj",
});

/** Norms have weights 1 + w, except the norms in DeltaNets. */
const model = () => ({ normOffset: 1, mtp: true });

/** Qwen3.5, 3.6, 3.8: Gated DeltaNets, and every fourth layer an attention with a gate and a partial rope. */
export const QWEN3_5: Family = {
  architecture: "Qwen3_5ForCausalLM",
  modelType: "qwen3_5_text",
  partialRope: true,
  wrappers: [{ architecture: "Qwen3_5ForConditionalGeneration", modelType: "qwen3_5" }],
  defaults: { ...DEFAULTS, num_key_value_heads: 4 },
  layer: (config, base, i) => mixing(config, base, i, base.mlp, { fused: false }),
  model,
  names: NAMES,
};

/** The same with mixtures of experts, one of which is shared and has a gate. */
export const QWEN3_5_MOE: Family = {
  architecture: "Qwen3_5MoeForCausalLM",
  modelType: "qwen3_5_moe_text",
  partialRope: true,
  wrappers: [{ architecture: "Qwen3_5MoeForConditionalGeneration", modelType: "qwen3_5_moe" }],
  defaults: { ...MIXTURE, num_experts: 256, num_experts_per_tok: 8 },
  layer: (config, base, i) =>
    // These always divide by the sum: transformers does not read norm_topk_prob.
    mixing(config, base, i, mixture(config, base, { normalize: true }), { fused: false }),
  model,
  names: NAMES,
};

/** Qwen3-Next: like Qwen3.5 with mixtures, but a DeltaNet's input matrices are stored by key heads. */
export const QWEN3_NEXT: Family = {
  architecture: "Qwen3NextForCausalLM",
  modelType: "qwen3_next",
  partialRope: true,
  defaults: MIXTURE,
  layer(config, base, i) {
    const step = integer(config, "decoder_sparse_step", { min: 1, max: 2 ** 20 });
    const dense = integers(config, "mlp_only_layers", 2 ** 20) ?? [];
    // No experts means that all layers are dense.
    const sparse = value(config, "num_experts") !== 0 && !dense.includes(i) && (i + 1) % step === 0;
    const normalize = flag(config, "norm_topk_prob", true);
    const mlp = sparse ? mixture(config, base, { normalize }) : base.mlp;
    return mixing(config, base, i, mlp, { fused: true });
  },
  model,
  names: NAMES,
};

function mixing(
  config: Fields,
  base: BaseLayer,
  i: number,
  mlp: MlpSpec,
  { fused }: Pick<DeltaNet, "fused">,
): LayerConfig {
  if (!isAttention(config, i)) {
    return { attention: deltaNet(config, base, fused), mlp, norms: "before" };
  }
  if (!flag(config, "attn_output_gate", true)) {
    throw unusable(config, "has attn_output_gate false, expected true");
  }
  const { attention } = base;
  const { headDim } = attention;
  const { width } = parseRope(config, headDim);
  return {
    attention: {
      ...attention,
      qkNorm: "head",
      outputGate: { gating: "sigmoid", per: "element" },
      gateInQuery: true,
      ...width < headDim ? { turned: width } : {},
    },
    mlp,
    norms: "before",
  };
}

function isAttention(config: Fields, i: number): boolean {
  const types = value(config, "layer_types");
  if (Array.isArray(types)) return types[i] === "full_attention";
  const interval = integer(config, "full_attention_interval", { min: 1, max: MAX.layers });
  return (i + 1) % interval === 0;
}

/** Most elements of a key: the recurrence keeps each in a register of its own. */
const MAX_KEY = 128;

function deltaNet(config: Fields, { mlp }: BaseLayer, fused: boolean): DeltaNet {
  if (mlp.activation !== "silu") {
    // It is the activation of the convolution too.
    const act = quote(value(config, "hidden_act"));
    throw unusable(
      config,
      `has hidden_act ${act}, but layers of linear attention; expected "silu"`,
    );
  }
  const heads = (key: string) => integer(config, key, { min: 1, max: MAX.heads });
  const dim = (key: string, max: number) => integer(config, key, { min: 8, max, multipleOf: 8 });
  const [keyHeads, valueHeads] = [heads("linear_num_key_heads"), heads("linear_num_value_heads")];
  if (valueHeads % keyHeads !== 0) {
    const why = `has linear_num_value_heads ${valueHeads}, expected a multiple of the ${keyHeads}`;
    throw unusable(config, `${why} of keys`);
  }
  const gate = value(config, "output_gate_type") ?? "silu";
  if (gate !== "silu" && gate !== "swish") {
    throw unusable(config, `has output_gate_type ${quote(gate)}, known are silu, swish`);
  }
  return {
    kind: "delta",
    keyHeads,
    valueHeads,
    keyDim: dim("linear_key_head_dim", MAX_KEY),
    valueDim: dim("linear_value_head_dim", 256),
    taps: integer(config, "linear_conv_kernel_dim", { min: 2, max: 16 }),
    fused,
    window: undefined,
  };
}

function mixture(config: Fields, base: BaseLayer, own: Pick<Routing, "normalize">): MlpSpec {
  const keys = { experts: "num_experts", size: "moe_intermediate_size" };
  const mlp = parseMixture(config, base, keys, own);
  const intermediateSize = integer(config, "shared_expert_intermediate_size", {
    min: 8,
    max: MAX.intermediate,
    multipleOf: 8,
  });
  return { ...mlp, shared: { ...base.mlp, intermediateSize }, sharedGate: true };
}
