// Input of rms_norm: row r of x with the sums of a split matmul added, in order of the splits; x keeps
// the result: the residual stream.

override SPLITS: u32;

@group(0) @binding(0) var<storage, read_write> x: array<vec4<f32>>; // [rows, COLS / 4]
@group(0) @binding(3) var<storage, read> sums: array<vec4<f32>>; // [SPLITS, rows, COLS / 4]

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
  let v = Eight(x[at] + sum.lo, x[at + 1u] + sum.hi);
  x[at] = v.lo;
  x[at + 1u] = v.hi;
  return v;
}
