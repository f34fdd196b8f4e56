// The partial result of some columns of a row of logits from which its token is chosen and the token's probability is
// computed:
//   (key, token, bits of sum of exp(logit - M), 0), key and token being the argmax (argmax.wgsl), M its logit
// The sum is 0 where no logit is above minus infinity, and means nothing where the key is BROKEN. The names are those
// of partial_argmax.wgsl.

//#import lib/argmax

alias Partial = vec4<u32>;

const NO_PARTIAL = Partial(NO_ARGMAX, 0u, 0u);

fn partial_of(logit: f32, token: u32) -> Partial {
  let one = argmax_of(logit, token);
  return Partial(one, bitcast<u32>(select(0.0, 1.0, one.x > NOTHING)), 0u);
}

fn joined(a: Partial, b: Partial) -> Partial {
  let ahead = before(b.xy, a.xy);
  let most = select(a, b, ahead);
  let rest = select(b, a, ahead);
  let share = bitcast<f32>(rest.z) * exp(logit_of(rest.x) - logit_of(most.x));
  let sum = bitcast<f32>(most.z) + select(0.0, share, rest.x > NOTHING);
  return Partial(most.xy, bitcast<u32>(sum), 0u);
}
