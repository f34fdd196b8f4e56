// Numbers of 4 bits, e2m1: a sign, 2 bits of exponent e (bias 1) and one of mantissa m: (1 + m / 2) 2^(e - 1), or m / 2
// where e is 0.
//
// With e and m as the lowest bits of an f16's exponent and the highest of its mantissa, the f16 is 2^-14 of the number, the
// smallest as a subnormal f16. Two f16 are made at a time. The places of the eight numbers' bits in a word (`fp4Word` of
// src/model/checkpoint/quantized/lane_order.ts) make that a few operations: numbers 2 j and 2 j + 1 are in the lower and
// the upper half, e and m of j = 0, 1, 2, 3 from bit 9, 6, 3, 0 of the half on, the sign at bit 15, 12, 14, 13.

fn small_e2m1(word: u32) -> Vec8 {
  let a = word & 0x8e008e00u;
  let b = (word << 3u) & 0x8e008e00u;
  let c = ((word << 6u) & 0x0e000e00u) | ((word << 1u) & 0x80008000u);
  let d = ((word << 9u) & 0x0e000e00u) | ((word << 2u) & 0x80008000u);
  return Vec8(
    vec4<f32>(unpack2x16float(a), unpack2x16float(b)),
    vec4<f32>(unpack2x16float(c), unpack2x16float(d)),
  );
}
