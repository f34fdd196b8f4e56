// Noise without state: a hash of where a number is used. The same (seed, position, token) gives the
// same noise in every round, batch and draft setting, so a text is a function of its seed alone.
// kernels/lib/noise.wgsl repeats this to the bit: u32 additions and products that wrap, xor, shifts.

/** 2^32 / golden ratio: keeps seed 0 away from 0, the fixed point of `mix32`. */
const GOLDEN = 0x9e3779b9;

/**
 * A permutation of the 32-bit integers in which each input bit flips each output bit with
 * probability near 1/2 (Chris Wellons, "lowbias32", https://nullprogram.com/blog/2018/07/31/):
 *
 *     x ^= x >> 16;  x *= 0x7feb352d;  x ^= x >> 15;  x *= 0x846ca68b;  x ^= x >> 16
 */
export function mix32(x: number): number {
  let h = x >>> 0;
  h = Math.imul(h ^ (h >>> 16), 0x7feb352d);
  h = Math.imul(h ^ (h >>> 15), 0x846ca68b);
  return (h ^ (h >>> 16)) >>> 0;
}

/**
 * The noise bits of one token at one position, a u32:
 *
 *     row  = mix32(mix32(seed + GOLDEN) ^ position)
 *     bits = mix32(mix32(token ^ row) + row)
 *
 * `row` enters twice: with the xor alone, the noise of one row would be that of another with its
 * tokens exchanged.
 * @param seed u32 of the request.
 * @param position Absolute position in the sequence of the token to be chosen, u32.
 * @param token Id in the target's vocabulary, u32.
 */
export function hash32(seed: number, position: number, token: number): number {
  const row = mix32(mix32(seed + GOLDEN) ^ position);
  return mix32(mix32(token ^ row) + row);
}

/** What policies draw from: hash32(seed, round, purpose). */
export function policyRandom(seed: number): (round: number, purpose: number) => number {
  return (round, purpose) => hash32(seed, round, purpose);
}
