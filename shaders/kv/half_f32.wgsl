// Half of a vec8 of values in f32: dims 4j .. 4j + 3 of a head.

alias PackedHalf = vec4<u32>;

fn load_half(row: u32, j: u32) -> PackedHalf {
  return values[row * 2u * VEC8S + j];
}

fn half_of(half: PackedHalf, j: u32) -> vec4<f32> {
  return bitcast<vec4<f32>>(half);
}

fn packed_half(v: Vec8, j: u32) -> PackedHalf {
  return bitcast<vec4<u32>>(select(v.lo, v.hi, j >= VEC8S));
}
