// Epilogue of matmul: out = capped y (fragments/soft_cap.wgsl).

//use fragments/soft_cap

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  let at = row * OUT_COLS + FIRST + c;
  let y = capped(vec4<f32>(sum, 0.0, 0.0));
  out[at] = y.x;
  out[at + half] = y.y;
}
