// Output of rms_norm that is added to what `out` holds: the residual connection after a normed branch.

@group(0) @binding(2) var<storage, read_write> out: array<vec4<f32>>; // [rows, OUT_COLS / 4]

fn put(at: u32, y: vec4<f32>) {
  out[at] += y;
}
