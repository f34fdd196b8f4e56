// The argmax of some columns of a row of logits: (key, token), the largest logit's bits in the order of
// the floats and its token, the lowest on a tie. BROKEN beats all: NaN or plus infinity.

//#import lib/constants

alias Argmax = vec2<u32>;

const BROKEN = 0xffffffffu;
const NOTHING = 0x007fffffu; // the key of minus infinity
const NO_ARGMAX = Argmax(0u, NOT_A_TOKEN);

// Bits in the order of the float values; minus zero is zero. By the bits: a compiler may assume
// that x == x.
fn ordered(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  if (bits == 0x80000000u) {
    return 0x80000000u;
  }
  return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
}

// The logit of a key: what `ordered` was given, but for the sign of zero.
fn logit_of(key: u32) -> f32 {
  return bitcast<f32>(select(~key, key & 0x7fffffffu, key >= 0x80000000u));
}

fn argmax_of(logit: f32, token: u32) -> Argmax {
  let bits = bitcast<u32>(logit);
  let broken = (bits & 0x7fffffffu) > 0x7f800000u || bits == 0x7f800000u;
  return Argmax(select(ordered(logit), BROKEN, broken), token);
}

// Whether a has the larger logit, or the same and the lower token.
fn before(a: Argmax, b: Argmax) -> bool {
  return a.x > b.x || (a.x == b.x && a.y < b.y);
}

fn better(a: Argmax, b: Argmax) -> Argmax {
  return select(a, b, before(b, a));
}
