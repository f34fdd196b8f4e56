// sum + v . v, one element after the other.
fn add_squares(sum: f32, v: vec4<f32>) -> f32 {
  return fma(v.w, v.w, fma(v.z, v.z, fma(v.y, v.y, fma(v.x, v.x, sum))));
}
