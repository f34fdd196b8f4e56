// Writes vec8s of keys and values of 16 bits as load_bf16.wgsl and load_f16.wgsl read them.
// Slot:
//   kv_pack: `fn kv_word(pair)`, the word of dims w and w + HEAD_DIM / 2 (kv/pack_*.wgsl).

//use kv_pack

fn packed_of(v: Vec8) -> PackedVec8 {
  return vec4<u32>(
    kv_word(vec2<f32>(v.lo.x, v.hi.x)),
    kv_word(vec2<f32>(v.lo.y, v.hi.y)),
    kv_word(vec2<f32>(v.lo.z, v.hi.z)),
    kv_word(vec2<f32>(v.lo.w, v.hi.w)),
  );
}

fn put_key(row: u32, i: u32, v: PackedVec8) {
  keys[row * VEC8S + i] = v;
}

fn put_value(row: u32, i: u32, v: PackedVec8) {
  values[row * VEC8S + i] = v;
}
