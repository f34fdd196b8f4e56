import { isSliding, slidingWindow } from "../decoder_config.ts";
import { type Fields, nested, value } from "../../files/fields.ts";
import { parseLayerRope, type Rope } from "../rope_config.ts";
import type { Family } from "../types.ts";
import { OLMO2 } from "./olmo2.ts";

const FULL = 0;
const SLIDING = 1;

const THETA = 500_000;

/** OLMo 3: OLMo-2 with a window on three of four layers, which have a rope of their own. */
export const OLMO3: Family = {
  ...OLMO2,
  architecture: "Olmo3ForCausalLM",
  modelType: "olmo3",
  defaults: { ...OLMO2.defaults, rope_theta: THETA, sliding_window: 4096 },
  layer(config, { attention, mlp }, i) {
    const local = isSliding(config, i, (i + 1) % 4 > 0);
    const window = local ? slidingWindow(config) : undefined;
    return {
      attention: { ...attention, qkNorm: "whole", window, rope: local ? SLIDING : FULL },
      mlp,
      norms: "after",
    };
  },
  ropes(config, headDim) {
    const fields = withLayerRopes(config);
    return ["full_attention", "sliding_attention"].map((type) =>
      parseLayerRope(fields, type, headDim) as Rope
    );
  },
};

/**
 * The fields with rope parameters for both kinds of layers, as Olmo3Config.convert_rope_params_to_dict of transformers
 * makes them: `rope_theta` and `rope_scaling` are those of full layers alone.
 */
function withLayerRopes(config: Fields): Fields {
  const own = nested(config, "rope_parameters") ?? { ...config, values: {} };
  // One rope for all layers under this key is refused: transformers cannot open that.
  for (const type of Object.keys(own.values)) nested(own, type);
  const of = (type: string) => nested(own, type)?.values ?? { rope_type: "default" };
  const rope_parameters = {
    full_attention: {
      rope_theta: value(config, "rope_theta"),
      ...of("full_attention"),
      ...nested(config, "rope_scaling")?.values,
    },
    sliding_attention: { rope_theta: THETA, ...of("sliding_attention") },
  };
  return { ...config, values: { ...config.values, rope_parameters } };
}
