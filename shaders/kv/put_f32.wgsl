// Writes vec8s of keys and values as load_f32.wgsl reads them.

fn packed_of(v: Vec8) -> PackedVec8 {
  return v;
}

fn put_key(row: u32, i: u32, v: PackedVec8) {
  let at = row * 2u * VEC8S + i;
  keys[at] = bitcast<vec4<u32>>(v.lo);
  keys[at + VEC8S] = bitcast<vec4<u32>>(v.hi);
}

fn put_value(row: u32, i: u32, v: PackedVec8) {
  let at = row * 2u * VEC8S + i;
  values[at] = bitcast<vec4<u32>>(v.lo);
  values[at + VEC8S] = bitcast<vec4<u32>>(v.hi);
}
