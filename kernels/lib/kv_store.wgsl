// Stores dims w and w + HEAD_DIM / 2 of a row of keys or values, in the layout that kv_load.wgsl reads.
//
// The kernel binds `keys` and `values` and declares HEAD_DIM.

//#if kv == f32
fn store_key(row: u32, w: u32, pair: vec2<f32>) {
  let at = row * HEAD_DIM + w;
  keys[at] = bitcast<u32>(pair.x);
  keys[at + HEAD_DIM / 2u] = bitcast<u32>(pair.y);
}

fn store_value(row: u32, w: u32, pair: vec2<f32>) {
  let at = row * HEAD_DIM + w;
  values[at] = bitcast<u32>(pair.x);
  values[at + HEAD_DIM / 2u] = bitcast<u32>(pair.y);
}
//#else
//#import lib/kv_pack

fn store_key(row: u32, w: u32, pair: vec2<f32>) {
  keys[row * (HEAD_DIM / 2u) + w] = kv_word(pair);
}

fn store_value(row: u32, w: u32, pair: vec2<f32>) {
  values[row * (HEAD_DIM / 2u) + w] = kv_word(pair);
}
//#endif
