/**
 * Rotary tables in the float32 steps of transformers (modeling_rope_utils.py,
 * `_compute_default_rope_parameters` and `_compute_llama3_parameters`), so that angles at far
 * positions come out the same. torch computes `scalar / tensor` as reciprocal times scalar.
 */
import type { Rope } from "./config.ts";

const f32 = Math.fround;

/**
 * cos and sin of every angle: [positions, headDim / 2, 2]. Angle (p, i) turns the pair of elements
 * (i, i + headDim / 2) of a query or key at position p.
 */
export function ropeTable(rope: Rope, headDim: number, positions: number): Float32Array {
  const frequencies = inverseFrequencies(rope, headDim);
  const table = new Float32Array(positions * headDim);
  let at = 0;
  for (let position = 0; position < positions; position++) {
    for (const frequency of frequencies) {
      const angle = f32(position * frequency);
      table[at++] = Math.cos(angle);
      table[at++] = Math.sin(angle);
    }
  }
  return table;
}

/** Radians a position, of each pair: [headDim / 2]. */
export function inverseFrequencies(rope: Rope, headDim: number): Float32Array {
  const base = f32(rope.theta);
  return Float32Array.from({ length: headDim / 2 }, (_, i) => {
    const frequency = f32(1 / f32(base ** f32(2 * i / headDim)));
    return rope.scaling.kind === "default" ? frequency : llama3(frequency, rope.scaling);
  });
}

/** Long waves are slowed by `factor`, short ones kept, and those between are mixed. */
function llama3(
  frequency: number,
  scaling: Extract<Rope["scaling"], { kind: "llama3" }>,
): number {
  const { factor, lowFreqFactor, highFreqFactor, originalMaxPositions: context } = scaling;
  const wave = f32(f32(1 / frequency) * f32(2 * Math.PI));
  const isLong = wave > f32(context / lowFreqFactor);
  const isShort = wave < f32(context / highFreqFactor);
  if (isLong) return f32(frequency / f32(factor));
  if (isShort) return frequency;
  const waves = f32(f32(1 / wave) * context);
  const smooth = f32(f32(waves - f32(lowFreqFactor)) / f32(highFreqFactor - lowFreqFactor));
  const slowed = f32(f32(f32(1 - smooth) * frequency) / f32(factor));
  return f32(slowed + f32(smooth * frequency));
}
