// What the norms of gated heads compute alike (norm/gated_norm.wgsl, matmul/matmul_resident.wgsl), each product that is
// added being explicit.

fn silu(z: vec4<f32>) -> vec4<f32> {
  return z / (1.0 + exp(-z));
}

fn square4(v: vec4<f32>) -> f32 {
  return fma(v.x, v.x, v.y * v.y) + fma(v.z, v.z, v.w * v.w);
}
