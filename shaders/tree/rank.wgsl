// Order among the columns of a row of logits, (key, column) as fragments/argmax has them.

//use fragments/argmax

// Whether a has the larger logit, or the same and the lower column.
fn before(a: Argmax, b: Argmax) -> bool {
  return a.x > b.x || (a.x == b.x && a.y < b.y);
}

// The logit of a key: what `ordered` was given, but for the sign of zero.
fn logit_of(key: u32) -> f32 {
  return bitcast<f32>(select(~key, key & 0x7fffffffu, key >= 0x80000000u));
}
