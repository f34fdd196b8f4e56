// Epilogue of matmul over a matrix [gate; up] whose output's scales are noted (tensor/out_noted.wgsl). Slot:
//   gate: `fn gated(sum)` (gate_*.wgsl).

//use gate

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  let y = gated(sum);
  consider(y);
  out[row * OUT_COLS + FIRST + c] = y;
}
