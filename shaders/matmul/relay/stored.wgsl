// Epilogue of matmul of one row whose output others wait for (relay/out.wgsl).

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  put_word(row * OUT_COLS + FIRST + c, sum.x);
  put_word(row * OUT_COLS + FIRST + c + half, sum.y);
}
