// Epilogue of matmul: keeps the partial result of a group's outputs for `end_group` (out_partial.wgsl, with
// its slot `partial`).

//use partial

override VOCAB: u32; // columns that count; what W has beyond is padding

var<private> kept: Partial = NO_PARTIAL;

fn consider(logit: f32, token: u32) {
  if (token < VOCAB) {
    kept = joined(kept, partial_of(logit, token));
  }
}

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  consider(sum.x, FIRST + c);
  consider(sum.y, FIRST + c + half);
}
