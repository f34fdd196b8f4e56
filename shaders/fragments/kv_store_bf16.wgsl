// Writes dims w and w + HEAD_DIM / 2 of a row of keys or values, kept as kv_load_bf16.wgsl reads them.

//use kv/pack_bf16

fn store_key(row: u32, w: u32, pair: vec2<f32>) {
  keys[row * (HEAD_DIM / 2u) + w] = packed(pair);
}

fn store_value(row: u32, w: u32, pair: vec2<f32>) {
  values[row * (HEAD_DIM / 2u) + w] = packed(pair);
}
