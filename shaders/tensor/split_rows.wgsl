// x[r, k] * scales[r] = hi + lo, two f16 numbers as matmul_tensor.wgsl makes them, eight of hi before their lo:
// for matmuls that bring a row of x many times.
//
// One invocation per eight numbers.

//use tensor/x_of_f32

override CHUNKS: u32; // columns / 8

// [rows]
@group(0) @binding(2) var<storage, read> scales: array<f32>;
// [rows, CHUNKS, 2]
@group(0) @binding(3) var<storage, read_write> halves: array<vec4<u32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= CHUNKS) {
    return;
  }
  let at = (id.y * CHUNKS + id.x) * 2u;
  let scale = scales[id.y];
  let a = x[at];
  let b = x[at + 1u];
  halves[at] = hi_of(a, b, scale);
  halves[at + 1u] = lo_of(a, b, scale);
}
