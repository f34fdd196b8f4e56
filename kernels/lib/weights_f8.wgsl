// w = e4m3 * scale, scale f32: the product rounds once, as it does in float32. A byte is a sign, 4 bits
// of exponent e (bias 7) and 3 of mantissa m: (1 + m / 8) 2^(e - 7), or m / 8 2^-6 where e is 0.
//
// Moved to the places of an f32 whose bias is 127, v = (1 + m / 8) 2^(e - 7). Where e is 0 that is
// (1 + m / 8) 2^-7, and 2 v - 2^-6 is the value: no subnormal number on the way, which a GPU may
// flush to 0.

//#import lib/weights_bytes

fn bytes(word: u32, scale: f32) -> vec4<f32> {
  let b = vec4<u32>(word, word >> 8u, word >> 16u, word >> 24u);
  let size = b & vec4<u32>(0x7fu);
  let v = bitcast<vec4<f32>>((size << vec4<u32>(20u)) + vec4<u32>(0x3c000000u));
  let small = v + v - vec4<f32>(0.015625);
  let signed = bitcast<vec4<u32>>(select(v, small, size < vec4<u32>(8u))) |
    ((b & vec4<u32>(0x80u)) << vec4<u32>(24u));
  return bitcast<vec4<f32>>(signed) * scale;
}
