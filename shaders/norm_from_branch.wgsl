// Input of rms_norm: row r of the sums of a split matmul, in order of the splits: what a branch of a layer
// makes, to be normed before it joins the residual stream.

override SPLITS: u32;

@group(0) @binding(0) var<storage, read> sums: array<vec4<f32>>; // [SPLITS, rows, COLS / 4]

struct Eight {
  lo: vec4<f32>,
  hi: vec4<f32>,
}

fn source(row: u32) -> u32 {
  return row;
}

fn load(row: u32, i: u32) -> Eight {
  let stride = arrayLength(&sums) / SPLITS;
  let at = row * (COLS / 4u) + 2u * i;
  var sum = Eight(sums[at], sums[at + 1u]);
  for (var s = 1u; s < SPLITS; s++) {
    sum.lo += sums[s * stride + at];
    sum.hi += sums[s * stride + at + 1u];
  }
  return sum;
}
