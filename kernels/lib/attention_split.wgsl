// Scores and weights of a split, SPLIT_CELLS cells of keys that a workgroup of attention takes together:
//   score = cap(SCALE q . k), weight = exp(score - peak of the split)

//#import lib/soft_cap

const SPLIT_CELLS = 64u;
// The score of a cell that is not seen, below all others; minus infinity would make NaN of inf - inf
const NEGATIVE = -3.0e38;

// sum + q . k over a vec8, one dim after the other.
fn add8(sum: f32, q: Vec8, k: Vec8) -> f32 {
  let a = fma(q.lo.w, k.lo.w, fma(q.lo.z, k.lo.z, fma(q.lo.y, k.lo.y, fma(q.lo.x, k.lo.x, sum))));
  return fma(q.hi.w, k.hi.w, fma(q.hi.z, k.hi.z, fma(q.hi.y, k.hi.y, fma(q.hi.x, k.hi.x, a))));
}

fn weighted(score: vec4<f32>, peak: vec4<f32>) -> vec4<f32> {
  return select(exp(score - peak), vec4<f32>(0.0), score == vec4<f32>(NEGATIVE));
}
