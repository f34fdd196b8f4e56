// The sums of a split-K matmul over its ranges of k, added in order. The file that uses this binds
// `sums`, [SPLITS, rows, COLS / 4].

//use fragments/vec8

override SPLITS: u32;

// The eight at vector `at` of the first range's rows, summed over the ranges.
fn split_sum(at: u32) -> Eight {
  let stride = arrayLength(&sums) / SPLITS;
  var sum = Eight(sums[at], sums[at + 1u]);
  for (var s = 1u; s < SPLITS; s++) {
    sum.lo += sums[s * stride + at];
    sum.hi += sums[s * stride + at + 1u];
  }
  return sum;
}
