// The vec8 at vector `at` of the first range's rows, summed over the ranges.
fn split_sum(at: u32) -> Vec8 {
  let stride = arrayLength(&sums) / SPLIT_K;
  var sum = Vec8(sums[at], sums[at + 1u]);
  for (var s = 1u; s < SPLIT_K; s++) {
    sum.lo += sums[s * stride + at];
    sum.hi += sums[s * stride + at + 1u];
  }
  return sum;
}
