// w = (u - 128) * scale, u a byte, scale f32: the product rounds once, as it does in float32.
//
// A byte in the mantissa of 256.0 is 256 + u: no conversion of integers.

//#import lib/weights_bytes

fn bytes(word: u32, scale: f32) -> vec4<f32> {
  let u = vec4<u32>(word << 15u, word << 7u, word >> 1u, word >> 9u) & vec4<u32>(0x7f8000u);
  return (bitcast<vec4<f32>>(u | vec4<u32>(0x43800000u)) - vec4<f32>(384.0)) * scale;
}
