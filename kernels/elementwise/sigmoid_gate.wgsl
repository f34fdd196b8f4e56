// out[r, c] = x[r, c] / (1 + exp(-gate[r, FIRST + c])), or with ROW the same gate, FIRST, for all of a row.
//
// One invocation per element.

override COLS: u32;
override GATE_COLS: u32;
override FIRST: u32;

@group(0) @binding(0) var<storage, read> x: array<f32>; // [rows, COLS]
@group(0) @binding(1) var<storage, read> gate: array<f32>; // [rows, GATE_COLS]
@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [rows, COLS]

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < COLS) {
    let at = id.y * COLS + id.x;
    //#if ROW
    let col = FIRST;
    //#else
    let col = FIRST + id.x;
    //#endif
    out[at] = x[at] / (1.0 + exp(-gate[id.y * GATE_COLS + col]));
  }
}
