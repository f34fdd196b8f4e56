//#if kv == f32
// Keys and values in f32: a row is [HEAD_DIM] in order. Vec8 i is dims 4i .. 4i + 3 of either half.

//#import lib/kv_vec8

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
//#else if kv == f16
// Keys and values in f16: word w of a row is (dim w, dim w + HEAD_DIM / 2), low half first, so that a
// rope pair is one word. Vec8 i is words 4i .. 4i + 3.

//#import lib/kv_vec8

alias PackedVec8 = vec4<u32>; // eight values as they are stored

fn load_key(row: u32, i: u32) -> PackedVec8 {
  return keys[row * VEC8S + i];
}

fn load_value(row: u32, i: u32) -> PackedVec8 {
  return values[row * VEC8S + i];
}

fn vec8_of(packed: PackedVec8) -> Vec8 {
  let x = unpack2x16float(packed.x);
  let y = unpack2x16float(packed.y);
  let z = unpack2x16float(packed.z);
  let w = unpack2x16float(packed.w);
  return Vec8(
    vec4<f32>(x.x, y.x, z.x, w.x),
    vec4<f32>(x.y, y.y, z.y, w.y),
  );
}
//#else
// Keys and values in bf16: word w of a row is (dim w, dim w + HEAD_DIM / 2), low half first, so that a
// rope pair is one word. Vec8 i is words 4i .. 4i + 3.

//#import lib/kv_vec8

alias PackedVec8 = vec4<u32>; // eight values as they are stored

fn load_key(row: u32, i: u32) -> PackedVec8 {
  return keys[row * VEC8S + i];
}

fn load_value(row: u32, i: u32) -> PackedVec8 {
  return values[row * VEC8S + i];
}

fn vec8_of(packed: PackedVec8) -> Vec8 {
  return Vec8(
    bitcast<vec4<f32>>(packed << vec4<u32>(16u)),
    bitcast<vec4<f32>>(packed & vec4<u32>(0xffff0000u)),
  );
}
//#endif
