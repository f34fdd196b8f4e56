import { isSliding, layerCount, slidingWindow } from "../decoder_config.ts";
import { type Fields, nested, positive, quote, unusable, value } from "../../files/fields.ts";
import { noRope, parseRope } from "../rope_config.ts";
import type { Family } from "../types.ts";
import { GRANITE } from "./granite.ts";

/** Granite SWA: Granite with a sink a head, windows on three of four layers, and a rope base for each layer. */
export const GRANITE_SWA: Family = {
  ...GRANITE,
  architecture: "GraniteSWAForCausalLM",
  modelType: "granite_swa",
  defaults: {
    ...GRANITE.defaults,
    max_position_embeddings: 8192,
    rms_norm_eps: 1e-5,
    num_key_value_heads: 4,
    tie_word_embeddings: true,
    sliding_window: 128,
  },
  layer(config, { attention, mlp }, i) {
    const window = isSliding(config, i, i % 4 > 0) ? slidingWindow(config) : undefined;
    const bases = layerBases(config);
    const rope = bases ? distinct(bases).indexOf(bases[i] as number) : 0;
    const scale = positive(config, "attention_multiplier");
    return { attention: { ...attention, scale, window, sinks: true, rope }, mlp, norms: "before" };
  },
  ropes(config, headDim) {
    const bases = layerBases(config);
    if (!bases) return [parseRope(config, headDim)];
    return distinct(bases).map((base) =>
      base === 0 ? noRope(headDim) : parseRope(withBase(config, base), headDim)
    );
  },
};

/** `layer_rope_theta`, the rope base of each layer, 0 where nothing is rotated. Absent: all have the config's base. */
function layerBases(config: Fields): readonly number[] | undefined {
  const list = value(config, "layer_rope_theta");
  if (list === undefined) return undefined;
  const layers = layerCount(config);
  const isBase = (item: unknown) => typeof item === "number" && item >= 0 && item < Infinity;
  if (Array.isArray(list) && list.length === layers && list.every(isBase)) return list;
  throw unusable(
    config,
    `has layer_rope_theta ${quote(list)}, expected a number from 0 on for each of ${layers} layers`,
  );
}

/** Each base once. 0 is the last, because the first rope's scaling decides the longest context. */
function distinct(bases: readonly number[]): number[] {
  return [...new Set(bases)].toSorted((a, b) => b - a);
}

/** The fields with another rope base, in `rope_parameters` too. */
function withBase(config: Fields, rope_theta: number): Fields {
  const { rope_parameters, rope_scaling } = config.values;
  const inside = (key: string) =>
    nested(config, key) && { ...nested(config, key)?.values, rope_theta };
  return {
    ...config,
    values: {
      ...config.values,
      rope_theta,
      ...rope_parameters ? { rope_parameters: inside("rope_parameters") } : {},
      ...rope_scaling ? { rope_scaling: inside("rope_scaling") } : {},
    },
  };
}
