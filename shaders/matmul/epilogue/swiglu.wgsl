// Epilogue of matmul over a matrix [gate; up]: out = silu(gate) * up.

//use matmul/epilogue/gate_silu

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  out[row * OUT_COLS + FIRST + c] = gated(sum);
}
