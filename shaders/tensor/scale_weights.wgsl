// W[n, k] = f16(W[n, k] * scales[n]) in place, of bf16 weights whose rows have no faults: exact.
//
// One invocation per eight weights, ACROSS workgroups in a row of workgroups: a dimension has at most 65,535.

override CHUNKS: u32; // columns / 8
override ACROSS: u32;

// [rows, CHUNKS]: eight bf16, then f16
@group(0) @binding(0) var<storage, read_write> weights: array<vec4<u32>>;
// [rows]
@group(0) @binding(1) var<storage, read> scales: array<f32>;

fn halves(pair: u32, scale: f32) -> u32 {
  return pack2x16float(bitcast<vec2<f32>>(vec2(pair << 16u, pair & 0xffff0000u)) * scale);
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let at = (group.y * ACROSS + group.x) * 256u + thread;
  if (at >= arrayLength(&weights)) {
    return;
  }
  let eight = weights[at];
  let scale = scales[at / CHUNKS];
  weights[at] = vec4(
    halves(eight.x, scale),
    halves(eight.y, scale),
    halves(eight.z, scale),
    halves(eight.w, scale),
  );
}
