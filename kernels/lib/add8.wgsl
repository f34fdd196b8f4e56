// sum + x . w over a vec8, one k after the other.

//#import lib/vec8

fn add8(sum: f32, lo: vec4<f32>, hi: vec4<f32>, w: Vec8) -> f32 {
  let a = fma(lo.w, w.lo.w, fma(lo.z, w.lo.z, fma(lo.y, w.lo.y, fma(lo.x, w.lo.x, sum))));
  return fma(hi.w, w.hi.w, fma(hi.z, w.hi.z, fma(hi.y, w.hi.y, fma(hi.x, w.hi.x, a))));
}
