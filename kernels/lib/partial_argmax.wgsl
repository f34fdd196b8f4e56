// What is kept of a part of a row's columns to choose its token: the argmax. See partial_softmax.wgsl.

//#import lib/argmax

alias Partial = Argmax;

const NO_PARTIAL = NO_ARGMAX;

fn partial_of(logit: f32, token: u32) -> Partial {
  return argmax_of(logit, token);
}

fn joined(a: Partial, b: Partial) -> Partial {
  return better(a, b);
}
