/** Formats that checkpoints come in. */
export type FloatFormat = "bf16" | "f16" | "f32";

/** Integers of 8 or 4 bits in groups of GROUP along k, each group with an f16 scale. */
export type Quantization = "q8" | "q4";

/**
 * What quantized checkpoints hold: 4-bit integers with a zero point, 8-bit integers, FP8 (e4m3), or FP4 (e2m1).
 * Each GROUP along k has a 32-bit word with its scale, and with its zero point in u4. In mxfp4 a group has one byte
 * instead, the exponent of its scale (e8m0); in nvfp4 the word is two f16 scales.
 */
export type Prequantized = "u4" | "i8" | "f8" | "mxfp4" | "nvfp4";

/** How a matrix is stored in GPU memory; each has its file in kernels/lib, `weights_FORMAT.wgsl`. */
export type WeightFormat = FloatFormat | Quantization | Prequantized;

/** Bytes of one element, without scales. */
export const WEIGHT_BYTES: Readonly<Record<WeightFormat, number>> = {
  bf16: 2,
  f16: 2,
  f32: 4,
  q8: 1,
  q4: 0.5,
  u4: 0.5,
  i8: 1,
  f8: 1,
  mxfp4: 0.5,
  nvfp4: 0.5,
};

/** Vec8s (8 weights each) in one packed block of a format. A lane reads a block with one load, in f32 with two. */
export const BLOCK_VEC8S: Readonly<Record<WeightFormat, number>> = {
  bf16: 1,
  f16: 1,
  f32: 1,
  q8: 2,
  q4: 4,
  u4: 4,
  i8: 2,
  f8: 2,
  mxfp4: 4,
  nvfp4: 4,
};

/** Consecutive weights along k that share a scale. */
export const GROUP = 32;

/** Whether weights share scales. */
export function isQuantized(format: WeightFormat): format is Quantization | Prequantized {
  return isInteger(format) || isPrequantized(format);
}

/** Whether weights are signed integers times a scale. */
export function isInteger(format: WeightFormat): format is Quantization {
  return format === "q8" || format === "q4";
}

export function isPrequantized(format: WeightFormat): format is Prequantized {
  return isFp4(format) || format === "u4" || format === "i8" || format === "f8";
}

/** Whether weights are 4-bit floats (e2m1). */
export function isFp4(format: WeightFormat): format is "mxfp4" | "nvfp4" {
  return format === "mxfp4" || format === "nvfp4";
}

/** Whether rows of `cols` can be quantized: their scales fill whole 32-bit words. */
export function isQuantizable(cols: number): boolean {
  return cols % (2 * GROUP) === 0;
}

/** Bytes of the scales of a row; 0 where there are none. */
export function scaleBytes(format: WeightFormat, cols: number): number {
  if (format === "mxfp4") return cols / GROUP;
  if (isPrequantized(format)) return 4 * cols / GROUP;
  return isQuantized(format) ? 2 * cols / GROUP : 0;
}

/**
 * Returns how many lanes share one output of a matrix [rows, cols]. A quantized matrix is packed in lane
 * order, so its number of blocks along k must be a multiple of the lanes.
 *
 * @param most the adapter's limit, a power of two.
 */
export function lanesFor(format: WeightFormat, cols: number, most: number): number {
  if (!isQuantized(format)) return most;
  const blocks = cols / 8 / BLOCK_VEC8S[format];
  let lanes = most;
  while (blocks % lanes !== 0) lanes /= 2;
  return lanes;
}
