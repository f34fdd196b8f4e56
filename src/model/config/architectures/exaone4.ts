import { isSliding, slidingWindow } from "../decoder_config.ts";
import { type Fields, integer, value } from "../../files/fields.ts";
import { noRope, parseRope } from "../rope_config.ts";
import type { Family } from "../types.ts";

const ROTATED = 0;
const UNROTATED = 1;

/**
 * EXAONE 4: the outputs of branches and each head of q and k are normed. If the config has a window (32B),
 * layers without a window do not rotate queries and keys.
 */
export const EXAONE4: Family = {
  architecture: "Exaone4ForCausalLM",
  modelType: "exaone4",
  defaults: { rms_norm_eps: 1e-5, num_key_value_heads: 32, sliding_window: 4096 },
  layer(config, { attention, mlp }, i) {
    const size = slidingWindow(config);
    const local = size !== undefined && isLocal(config, i);
    return {
      attention: {
        ...attention,
        qkNorm: "head",
        window: local ? size : undefined,
        rope: local || size === undefined ? ROTATED : UNROTATED,
      },
      mlp,
      norms: "after",
    };
  },
  ropes: (config, headDim) => [parseRope(config, headDim), noRope(headDim)],
};

/** Whether layer `i` has a window. The pattern is not read where there are `layer_types`. */
function isLocal(config: Fields, i: number): boolean {
  return value(config, "layer_types") === undefined
    ? (i + 1) % pattern(config) > 0
    : isSliding(config, i, false);
}

/** Length of the pattern of layers, whose last has no window: 4, or the length of "LLLG". */
function pattern(config: Fields): number {
  const letters = value(config, "sliding_window_pattern");
  if (typeof letters === "string" && /^L+G$/.test(letters)) return letters.length;
  return integer(config, "sliding_window_pattern", { min: 1, max: 1024, fallback: 4 });
}
