// Dims w and w + HEAD_DIM / 2 of a row of keys or values as one word of two f16 or bf16 numbers, low half first.

//#if kv == f16
const MAX = vec2<f32>(65504.0); // largest f16; beyond it pack2x16float may give anything

fn kv_word(pair: vec2<f32>) -> u32 {
  return pack2x16float(clamp(pair, -MAX, MAX));
}
//#else
// Rounds to nearest even: adds just under half of the last place that is kept, and its own bit.
fn kv_word(pair: vec2<f32>) -> u32 {
  let bits = bitcast<vec2<u32>>(pair);
  let rounded = bits + 0x7fffu + ((bits >> vec2<u32>(16u)) & vec2<u32>(1u));
  return (rounded.x >> 16u) | (rounded.y & 0xffff0000u);
}
//#endif
