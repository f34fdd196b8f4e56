// Output of rms_norm.

fn put(at: u32, y: vec4<f32>) {
  out[at] = y;
}
