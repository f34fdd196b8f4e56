/**
 * Rotary tables, computed with the same float32 steps as transformers (modeling_rope_utils.py,
 * `_compute_*`), so that angles at far positions are the same. torch computes `scalar / tensor` as
 * reciprocal times scalar.
 */
import type { Rope, RopeScaling } from "../config/rope_config.ts";
import { toBf16 } from "../config/rounded_buffers.ts";

const f32 = Math.fround;

type Scaling<Kind> = Extract<RopeScaling, { readonly kind: Kind }>;

/**
 * cos and sin of every angle: [positions, headDim / 2, 2]. Angle (p, i) rotates pair i of a query or
 * key at position p; pairs past the rope's width are not rotated.
 * @param context tokens that a sequence may hold. Where transformers' frequencies depend on the current
 * length of the text (dynamic, longrope), those of this length are used from the first token on: stored
 * keys stay valid, whatever is generated after them.
 */
export function ropeTable(
  rope: Rope,
  headDim: number,
  { positions, context }: { readonly positions: number; readonly context: number },
): Float32Array {
  const frequencies = inverseFrequencies(rope, context);
  const scale = f32(attentionFactor(rope.scaling));
  const passing = (headDim - rope.width) / 2;
  const table = new Float32Array(positions * headDim);
  let at = 0;
  for (let position = 0; position < positions; position++) {
    for (const frequency of frequencies) {
      const angle = f32(position * frequency);
      table[at++] = f32(Math.cos(angle)) * scale;
      table[at++] = f32(Math.sin(angle)) * scale;
    }
    for (let i = 0; i < passing; i++, at += 2) table[at] = 1;
  }
  return table;
}

/** Radians per position of each pair: [width / 2]. */
export function inverseFrequencies(rope: Rope, context: number): Float32Array {
  const frequencies = exactFrequencies(rope, context);
  return rope.rounded ? frequencies.map(toBf16) : frequencies;
}

function exactFrequencies(rope: Rope, context: number): Float32Array {
  const { width, scaling } = rope;
  const base = f32(scaling.kind === "dynamic" ? dynamicTheta(rope, scaling, context) : rope.theta);
  const powers = Float32Array.from({ length: width / 2 }, (_, i) => base ** f32(2 * i / width));
  const factor = f32("factor" in scaling ? scaling.factor : 1);
  switch (scaling.kind) {
    case "none":
      return new Float32Array(width / 2);
    case "proportional":
      return powers.map((power, i) => i < scaling.pairs ? f32(1 / power) / factor : 0);
    case "linear":
      return powers.map((power) => f32(1 / power) / factor);
    case "llama3":
      return powers.map((power) => llama3(f32(1 / power), scaling));
    case "yarn":
      return yarn(rope, scaling, powers);
    case "longrope": {
      const isLong = context > scaling.originalMaxPositions;
      const factors = isLong ? scaling.longFactors : scaling.shortFactors;
      return powers.map((power, i) => 1 / f32(f32(factors[i] as number) * power));
    }
    default:
      return powers.map((power) => 1 / power);
  }
}

function attentionFactor(scaling: RopeScaling): number {
  return "attentionFactor" in scaling ? scaling.attentionFactor : 1;
}

/** theta (f n / P - (f - 1))^(width / (width - 2)), n = max(context, P). */
function dynamicTheta(
  { theta, width }: Rope,
  { factor, maxPositions }: Scaling<"dynamic">,
  context: number,
): number {
  const n = Math.max(context, maxPositions);
  return theta * (factor * n / maxPositions - (factor - 1)) ** (width / (width - 2));
}

/** Divides low frequencies by `factor`, keeps high ones, and interpolates between. */
function llama3(frequency: number, scaling: Scaling<"llama3">): number {
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

/** Keeps pairs that turn often within the original context, and divides slow frequencies by `factor`. */
function yarn({ theta, width }: Rope, scaling: Scaling<"yarn">, powers: Float32Array) {
  const { factor, originalMaxPositions: context, betaFast, betaSlow, truncate } = scaling;
  /** The pair that makes `turns` turns within the original context. */
  const pairOf = (turns: number) =>
    width * Math.log(context / (turns * 2 * Math.PI)) / (2 * Math.log(theta));
  const [fast, slow] = [pairOf(betaFast), pairOf(betaSlow)];
  const low = Math.max(truncate ? Math.floor(fast) : fast, 0);
  const end = Math.min(truncate ? Math.ceil(slow) : slow, width - 1);
  const high = low === end ? end + 0.001 : end;
  return powers.map((power, i) => {
    const ramp = Math.min(Math.max(f32(f32(i - f32(low)) / f32(high - low)), 0), 1);
    const kept = f32(1 - ramp);
    const slowed = f32(f32(1 / f32(f32(factor) * power)) * f32(1 - kept));
    return slowed + f32(f32(1 / power) * kept);
  });
}
