// Epilogue of matmul: keeps the best of a group's outputs for `end_group` (out_argmax.wgsl).

//use fragments/argmax

override VOCAB: u32; // columns that count; what W has beyond is padding

var<private> best: Argmax = NO_ARGMAX;

fn consider(logit: f32, token: u32) {
  if (token < VOCAB) {
    best = better(best, argmax_of(logit, token));
  }
}

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  consider(sum.x, FIRST + c);
  consider(sum.y, FIRST + c + half);
}
