// sum + q . k, one element after the other.
fn dot4(sum: f32, q: vec4<f32>, k: vec4<f32>) -> f32 {
  return fma(q.w, k.w, fma(q.z, k.z, fma(q.y, k.y, fma(q.x, k.x, sum))));
}
