// Epilogue of matmul: out = y.

fn finish(at: u32, c: u32, half: u32, sum: vec2<f32>) {
  out[at + c] = sum.x;
  out[at + c + half] = sum.y;
}
