// Epilogue of matmul: out = out + y, the residual connection.

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  let at = row * OUT_COLS + FIRST + c;
  out[at] += sum.x;
  out[at + half] += sum.y;
}
