// Epilogue of matmul over a matrix [gate; up]: out = silu(gate) * up, silu(g) = g / (1 + exp(-g)).

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  let at = row * OUT_COLS + FIRST + c;
  out[at] = sum.x / (1.0 + exp(-sum.x)) * sum.y;
}
