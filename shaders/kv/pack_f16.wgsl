// Dims w and w + HEAD_DIM / 2 of a row of keys or values as a word, as load_f16.wgsl reads them.

const MOST = vec2<f32>(65504.0); // largest f16; beyond it pack2x16float may give anything

fn kv_word(pair: vec2<f32>) -> u32 {
  return pack2x16float(clamp(pair, -MOST, MOST));
}
