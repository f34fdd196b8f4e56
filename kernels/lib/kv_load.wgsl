// Loads keys and values in vec8s: four rope pairs, dims 4i .. 4i + 3 of either half of a head. `PackedVec8` is a vec8
// as it is stored, `vec8_of` unpacks it. f32: a row is [HEAD_DIM] in order. f16 and bf16: word w of a row is (dim w,
// dim w + HEAD_DIM / 2), low half first, so that a rope pair is one word; vec8 i is words 4i .. 4i + 3.
//
// The kernel binds `keys` and `values`.

//#import lib/kv_vec8

//#if kv == f32
alias PackedVec8 = Vec8;

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
//#else
alias PackedVec8 = vec4<u32>;

fn load_key(row: u32, i: u32) -> PackedVec8 {
  return keys[row * VEC8S + i];
}

fn load_value(row: u32, i: u32) -> PackedVec8 {
  return values[row * VEC8S + i];
}

//#if kv == f16
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
fn vec8_of(packed: PackedVec8) -> Vec8 {
  return Vec8(
    bitcast<vec4<f32>>(packed << vec4<u32>(16u)),
    bitcast<vec4<f32>>(packed & vec4<u32>(0xffff0000u)),
  );
}
//#endif
//#endif
