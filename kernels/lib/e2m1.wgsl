// Numbers of 4 bits, e2m1: a sign, 2 bits of exponent e (bias 1) and one of mantissa m: (1 + m / 2) 2^(e - 1), or m / 2
// where e is 0.
//
// With e and m as the lowest bits of an f16's exponent and the highest of its mantissa, the f16 is 2^-14 of the number,
// the smallest as a subnormal f16. Two f16 are made at a time. The places of the eight numbers' bits in a word
// (`fp4Word` of src/model/checkpoint/quantized/lane_order.ts) make that a few operations: numbers 2 j and 2 j + 1 are
// in the lower and the upper half, e and m of j = 0, 1, 2, 3 from bit 9, 6, 3, 0 of the half on, the sign at bit 15,
// 12, 14, 13.

// 2^-14 of the eight numbers, two f16 each.
fn pairs_of_e2m1(word: u32) -> vec4<u32> {
  return vec4<u32>(
    word & 0x8e008e00u,
    (word << 3u) & 0x8e008e00u,
    ((word << 6u) & 0x0e000e00u) | ((word << 1u) & 0x80008000u),
    ((word << 9u) & 0x0e000e00u) | ((word << 2u) & 0x80008000u),
  );
}

// 2^-14 of the eight numbers.
fn small_e2m1(word: u32) -> Vec8 {
  let pairs = pairs_of_e2m1(word);
  return Vec8(
    vec4<f32>(unpack2x16float(pairs.x), unpack2x16float(pairs.y)),
    vec4<f32>(unpack2x16float(pairs.z), unpack2x16float(pairs.w)),
  );
}
