// What a split matmul left: the sums over its ranges of k, to be added in order.

override SPLITS: u32;

struct Eight {
  lo: vec4<f32>,
  hi: vec4<f32>,
}

// The eight at vector `at` of the first range's rows. `sums`, [SPLITS, rows, COLS / 4], is bound
// by the file before.
fn split_sum(at: u32) -> Eight {
  let stride = arrayLength(&sums) / SPLITS;
  var sum = Eight(sums[at], sums[at + 1u]);
  for (var s = 1u; s < SPLITS; s++) {
    sum.lo += sums[s * stride + at];
    sum.hi += sums[s * stride + at + 1u];
  }
  return sum;
}
