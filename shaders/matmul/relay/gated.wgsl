// Epilogue of matmul of one row over a matrix [gate; up] whose output others wait for (relay/out.wgsl). Slot:
//   gate: `fn gated(sum)` (epilogue/gate_*.wgsl).

//use gate

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  put_word(FIRST + c, gated(sum));
}
