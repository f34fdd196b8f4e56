// The online softmax (Milakov & Gimelshein 2018), for one query or four: sums of weighted values grow by parts of the
// cells,
//   sum = shrink * sum + share * sum of the part,
// and totals of weights likewise. A part of which a query sees no cell changes nothing, to the bit.

const NEGATIVE = -3.0e38; // below every score: the peak where no cell is seen; minus infinity would make NaN

struct Fold {
  peak: vec4<f32>,
  shrink: vec4<f32>,
  share: vec4<f32>,
}

// The factors for a part whose largest score is `own`, `peak` being the largest score before it.
fn fold_of(peak: vec4<f32>, own: vec4<f32>) -> Fold {
  let none = own == vec4<f32>(NEGATIVE);
  let first = peak == vec4<f32>(NEGATIVE);
  let top = max(peak, own);
  let shrink = select(select(exp(peak - top), vec4<f32>(0.0), first), vec4<f32>(1.0), none);
  let share = select(select(exp(own - top), vec4<f32>(1.0), first), vec4<f32>(0.0), none);
  return Fold(top, shrink, share);
}

// The same of one query: (shrink, share, new peak).
fn fold_one(peak: f32, own: f32) -> vec3<f32> {
  let none = own == NEGATIVE;
  let first = peak == NEGATIVE;
  let top = max(peak, own);
  let shrink = select(select(exp(peak - top), 0.0, first), 1.0, none);
  let share = select(select(exp(own - top), 1.0, first), 0.0, none);
  return vec3<f32>(shrink, share, top);
}
