import { integer, unusable, value } from "../../files/fields.ts";
import { noRope, parseRope } from "../rope_config.ts";
import { llamaNamesBut } from "../tensor_names.ts";
import type { Family } from "../types.ts";
import { GRANITE } from "./granite.ts";

const MLP = "shared_mlp.input_linear";

/** Granite 4.0 without Mamba layers and experts (micro, 1B, 350M): Granite whose gate and up are rows of one tensor. */
export const GRANITE_HYBRID: Family = {
  ...GRANITE,
  architecture: "GraniteMoeHybridForCausalLM",
  modelType: "granitemoehybrid",
  renamed: { intermediate_size: "shared_intermediate_size", layer_types: "layers_block_type" },
  defaults: { ...GRANITE.defaults, shared_intermediate_size: 1024, num_local_experts: 8 },
  layer(config, base, i) {
    const experts = integer(config, "num_local_experts", { min: 0, max: 2 ** 16 });
    if (experts > 0) throw unusable(config, `has num_local_experts ${experts}, expected 0`);
    if (value(config, "layer_types") === undefined) {
      throw unusable(config, "has no layer_types: all its layers are Mamba's, which do not run");
    }
    return GRANITE.layer?.(config, base, i) ?? { ...base, norms: "before" };
  },
  ropes: (config, headDim) => [
    value(config, "position_embedding_type") === "rope"
      ? parseRope(config, headDim)
      : noRope(headDim),
  ],
  names: llamaNamesBut({ gate: MLP, up: MLP, down: "shared_mlp.output_linear" }),
};
