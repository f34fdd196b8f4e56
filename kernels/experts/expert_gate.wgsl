// out[j, c] = the clamped gate (lib/clamped_gate.wgsl) of x[j, 2 c] + bias[e, 2 c] and x[j, 2 c + 1] + bias[e, 2 c + 1]
// of job j, e its expert.
//
// One invocation per element.

//#import lib/clamped_gate

override COLS: u32; // of out

@group(0) @binding(0) var<storage, read> x: array<vec2<f32>>; // [jobs, COLS]
@group(0) @binding(1) var<storage, read> bias: array<vec2<f32>>; // [experts, COLS]
@group(0) @binding(2) var<storage, read> experts: array<u32>; // [jobs]
@group(0) @binding(3) var<storage, read_write> out: array<f32>; // [jobs, COLS]

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= COLS) {
    return;
  }
  let at = id.y * COLS + id.x;
  out[at] = clamped(x[at] + bias[experts[id.y] * COLS + id.x]);
}
