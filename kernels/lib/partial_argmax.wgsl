// The partial result of some columns of a row of logits from which its token is chosen: their argmax.
//
// This file and partial_softmax.wgsl declare the same names: `Partial`, `NO_PARTIAL` (of no columns),
// `fn partial_of(logit, token)` (of one column) and `fn joined(a, b)` (of the columns of both, which have none in
// common).

//#import lib/argmax

alias Partial = Argmax;

const NO_PARTIAL = NO_ARGMAX;

fn partial_of(logit: f32, token: u32) -> Partial {
  return argmax_of(logit, token);
}

fn joined(a: Partial, b: Partial) -> Partial {
  return better(a, b);
}
