// Output of rms_norm that is added to what `out` holds: the residual connection after a normed branch.

fn put(at: u32, y: vec4<f32>) {
  out[at] += y;
}
