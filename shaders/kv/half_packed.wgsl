// Half of a vec8 of values whose halves share words: dims 4j .. 4j + 3 of a head.

alias PackedHalf = PackedVec8;

fn load_half(row: u32, j: u32) -> PackedHalf {
  return load_value(row, j % VEC8S);
}

fn half_of(half: PackedHalf, j: u32) -> vec4<f32> {
  let v = vec8_of(half);
  return select(v.lo, v.hi, j >= VEC8S);
}

fn packed_half(v: Vec8, j: u32) -> PackedHalf {
  return packed_of(v);
}
