import { flag, integer, integers, quote, unusable } from "../../files/fields.ts";
import { layerCount } from "../decoder_config.ts";
import { noRope, parseRope } from "../rope_config.ts";
import type { Family } from "../types.ts";

const ROTATED = 0;
const UNROTATED = 1;

/** SmolLM3: Llama with layers whose queries and keys are not rotated, by default every fourth. */
export const SMOLLM3: Family = {
  architecture: "SmolLM3ForCausalLM",
  modelType: "smollm3",
  defaults: {
    max_position_embeddings: 32_768,
    num_key_value_heads: 4,
    rope_theta: 2_000_000,
    tie_word_embeddings: true,
    no_rope_layer_interval: 4,
  },
  layer(config, { attention, mlp }, i) {
    if (flag(config, "use_sliding_window", false)) {
      throw unusable(config, "has use_sliding_window true, expected false");
    }
    // The key's name says the opposite of its meaning: 1 is a layer with rope.
    const listed = integers(config, "no_rope_layers", 1);
    const layers = layerCount(config);
    if (listed && listed.length !== layers) {
      const why = `has no_rope_layers ${quote(listed)}, expected one for each of its ${layers}`;
      throw unusable(config, `${why} layers`);
    }
    const interval = integer(config, "no_rope_layer_interval", { min: 1, max: 1024 });
    const rotated = listed ? listed[i] === 1 : (i + 1) % interval > 0;
    return {
      attention: { ...attention, rope: rotated ? ROTATED : UNROTATED },
      mlp,
      norms: "before",
    };
  },
  ropes: (config, headDim) => [parseRope(config, headDim), noRope(headDim)],
};
