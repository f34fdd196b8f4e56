// Writes dims w and w + HEAD_DIM / 2 of a row of keys or values of 16 bits, kept as load_bf16.wgsl and load_f16.wgsl read
// them. Slot:
//   kv_pack: `fn kv_word(pair)`, their word (kv/pack_*.wgsl).

//use kv_pack

fn store_key(row: u32, w: u32, pair: vec2<f32>) {
  keys[row * (HEAD_DIM / 2u) + w] = kv_word(pair);
}

fn store_value(row: u32, w: u32, pair: vec2<f32>) {
  values[row * (HEAD_DIM / 2u) + w] = kv_word(pair);
}
