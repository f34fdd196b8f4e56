// Exact powers of two.

// 2^x of a whole number x; 0 below -126, and 2^127 from there on.
fn power(x: f32) -> f32 {
  return bitcast<f32>(u32(i32(clamp(x, -127.0, 127.0)) + 127) << 23u);
}

fn powers(x: vec4<f32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(vec4<u32>(vec4<i32>(clamp(x, vec4(-127.0), vec4(127.0))) + vec4(127)) << vec4(23u));
}

// log2 of x, a power of two.
fn exponent(x: f32) -> f32 {
  return f32(i32(bitcast<u32>(x) >> 23u) - 127);
}
