// Gates of attention's output, in binding 12.

//#import lib/gating

override GATE_COLS: u32; // row stride of gate, a multiple of 4
override GATE_FIRST: u32; // column of the first gate, a multiple of 4
override GATE_WIDTH: u32; // neighbouring numbers that share a gate: 1, or a multiple of 4

@group(0) @binding(12) var<storage, read> gate: array<vec4<f32>>; // [rows, GATE_COLS / 4]

// Four numbers of a row, multiplied by what their gates make.
fn gated(row: u32, quad: u32, x: vec4<f32>) -> vec4<f32> {
  let first = (row * GATE_COLS + GATE_FIRST) / 4u;
  if (GATE_WIDTH == 1u) {
    return gated_by(x, gate[first + quad]);
  }
  let column = 4u * quad / GATE_WIDTH;
  return gated_by(x, vec4<f32>(gate[first + column / 4u][column % 4u]));
}
