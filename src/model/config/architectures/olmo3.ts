import { isSliding, slidingWindow } from "../decoder_config.ts";
import { parseLayerRope, parseRope } from "../rope_config.ts";
import type { Family } from "../types.ts";
import { OLMO2 } from "./olmo2.ts";

const FULL = 0;
const SLIDING = 1;

/** OLMo 3: OLMo-2 with a window on three of four layers, whose rope is never scaled. */
export const OLMO3: Family = {
  ...OLMO2,
  architecture: "Olmo3ForCausalLM",
  modelType: "olmo3",
  defaults: { ...OLMO2.defaults, rope_theta: 500_000, sliding_window: 4096 },
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
    const full = parseLayerRope(config, "full_attention", headDim) ?? parseRope(config, headDim);
    const sliding = parseLayerRope(config, "sliding_attention", headDim);
    return [full, sliding ?? { ...full, scaling: { kind: "default" } }];
  },
};
