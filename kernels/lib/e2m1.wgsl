// Numbers of 4 bits, e2m1: a sign, 2 bits of exponent e (bias 1) and one of mantissa m: (1 + m / 2) 2^(e - 1), or m / 2
// where e is 0.
//
// Moved to the places of an f32, v = (1 + m / 2) 2^(e - 2) is half of it. Where e is 0 that is (1 + m / 2) / 4, and
// 2 v - 1 / 2 is the half: no subnormal number on the way, which a GPU may flush to 0.

// Halves of the numbers in the four lowest nibbles. min(v, 2 v - 1 / 2) is v from e = 1 on.
fn halves_of_e2m1(word: u32) -> vec4<f32> {
  let size = (vec4<u32>(word) << vec4<u32>(22u, 18u, 14u, 10u)) & vec4<u32>(0x1c00000u);
  let sign = (vec4<u32>(word) << vec4<u32>(28u, 24u, 20u, 16u)) & vec4<u32>(0x80000000u);
  let v = bitcast<vec4<f32>>(size + vec4<u32>(0x3e800000u));
  let magnitude = min(v, fma(v, vec4<f32>(2.0), vec4<f32>(-0.5)));
  return bitcast<vec4<f32>>(bitcast<vec4<u32>>(magnitude) | sign);
}
