// x as two f16 numbers, hi = hi_of(x) and lo = x - hi_of(x), eight of either in a vector.

//#import lib/packed

// x truncated to the 11 significant bits that f16 has.
fn hi_of(x: vec4<f32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(bitcast<vec4<u32>>(x) & vec4(0xffffe000u));
}
