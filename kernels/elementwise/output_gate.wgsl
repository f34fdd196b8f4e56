// out[r, c] = x[r, c] f(gate[r, FIRST + c / WIDTH]), where f is the sigmoid or softplus, see lib/gating.wgsl.
//
// One invocation per element.

//#import lib/gating

override COLS: u32;
override GATE_COLS: u32;
override FIRST: u32;
override WIDTH: u32; // neighbouring numbers that share a gate

@group(0) @binding(0) var<storage, read> x: array<f32>; // [rows, COLS]
@group(0) @binding(1) var<storage, read> gate: array<f32>; // [rows, GATE_COLS]
@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [rows, COLS]

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < COLS) {
    let at = id.y * COLS + id.x;
    let own = gate[id.y * GATE_COLS + FIRST + id.x / WIDTH];
    out[at] = gated_by(vec4<f32>(x[at]), vec4<f32>(own)).x;
  }
}
