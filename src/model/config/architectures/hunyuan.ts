import { type Fields, positive, value } from "../../files/fields.ts";
import { parseRope, type Rope, ropeFields, ropeKind } from "../rope_config.ts";
import { llamaNamesBut } from "../tensor_names.ts";
import type { Family } from "../types.ts";

/** Hunyuan 0.5B to 7B: Llama with RMSNorm over each head of q and k, after rope. */
export const HUNYUAN_DENSE: Family = {
  architecture: "HunYuanDenseV1ForCausalLM",
  modelType: "hunyuan_v1_dense",
  defaults: { rms_norm_eps: 1e-5 },
  layer: (_, { attention, mlp }) => ({
    attention: { ...attention, qkNorm: "head", normAfterRope: true },
    mlp,
    norms: "before",
  }),
  ropes: (config, headDim) => [ropeOf(config, headDim)],
  names: llamaNamesBut({
    qNorm: "self_attn.query_layernorm",
    kNorm: "self_attn.key_layernorm",
  }),
};

/**
 * A rope of type dynamic with `alpha` has a base that does not depend on the text's length:
 * theta alpha^(headDim / (headDim - 2)). Its `factor` is not read, so the context ends at `max_position_embeddings`:
 * behind that transformers changes to frequencies without alpha, with which the model was not trained.
 */
function ropeOf(config: Fields, headDim: number): Rope {
  const inside = ropeFields(config);
  if (!inside || ropeKind(inside) !== "dynamic" || !value(inside, "alpha")) {
    return parseRope(config, headDim);
  }
  const theta = positive(value(inside, "rope_theta") === undefined ? config : inside, "rope_theta");
  const base = theta * positive(inside, "alpha") ** (headDim / (headDim - 2));
  return { theta: base, width: headDim, scaling: { kind: "default" } };
}
