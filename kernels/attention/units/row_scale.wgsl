// The scale of the row that WIDE invocations have, two vec8s each.

//#import lib/scale_of
//#import attention/units/halves

fn row_scale(x: Vec8, y: Vec8) -> f32 {
  let most = max(max(abs(x.lo), abs(x.hi)), max(abs(y.lo), abs(y.hi)));
  var peak = max(max(most.x, most.y), max(most.z, most.w));
  //#for w in WIDE_STEPS
  peak = max(peak, subgroupShuffleXor(peak, 1u << $wu));
  //#endfor
  return scale_of(peak);
}
