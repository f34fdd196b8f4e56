// Keys and values in f32: a row is [HEAD_DIM] in order. Vec8 i is dims 4i .. 4i + 3 of either half.

//use kv/vec8

alias PackedVec8 = Vec8; // eight values as they are stored

fn load_key(row: u32, i: u32) -> PackedVec8 {
  let at = row * 2u * VEC8S + i;
  return PackedVec8(bitcast<vec4<f32>>(keys[at]), bitcast<vec4<f32>>(keys[at + VEC8S]));
}

fn load_value(row: u32, i: u32) -> PackedVec8 {
  let at = row * 2u * VEC8S + i;
  return PackedVec8(bitcast<vec4<f32>>(values[at]), bitcast<vec4<f32>>(values[at + VEC8S]));
}

fn vec8_of(packed: PackedVec8) -> Vec8 {
  return packed;
}
