import type { ModelConfig } from "./types.ts";

/** Families whose embedding scale is a buffer of a module in transformers. */
const SCALE_IS_BUFFER = ["gemma3_text", "gemma4_text", "gemma4_unified_text"];

/**
 * The config of a model that transformers has cast to bf16 and back to float32. torch's `Module.to` casts buffers too,
 * which rounds rope's frequencies and Gemma's embedding scales. A model that is loaded in float32 has them in float32.
 */
export function withRoundedBuffers(config: ModelConfig): ModelConfig {
  const { ropes, embedScale, perLayer, modelType } = config;
  const rounded = { ...config, ropes: ropes.map((rope) => ({ ...rope, rounded: true })) };
  if (!SCALE_IS_BUFFER.includes(modelType)) return rounded;
  return {
    ...rounded,
    embedScale: toBf16(embedScale),
    ...perLayer && { perLayer: { ...perLayer, scale: toBf16(perLayer.scale) } },
  };
}

/** Rounds to the nearest bf16, ties to even. */
export function toBf16(x: number): number {
  const bits = new Uint32Array(Float32Array.of(x).buffer);
  const [word = 0] = bits;
  bits[0] = word + 0x7fff + (word >>> 16 & 1) & 0xffff0000;
  return new Float32Array(bits.buffer)[0] ?? x;
}
