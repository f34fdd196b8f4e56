// Input of rms_norm: row r of x with the sums of a split-K matmul added; the result is stored in x, the
// residual stream.

//use fragments/split_k_sums

@group(0) @binding(0) var<storage, read_write> x: array<vec4<f32>>; // [rows, COLS / 4]
@group(0) @binding(3) var<storage, read> sums: array<vec4<f32>>; // [SPLIT_K, rows, COLS / 4]

fn source(row: u32, lane: u32) -> u32 {
  return row;
}

fn load(row: u32, i: u32) -> Vec8 {
  let at = row * (COLS / 4u) + 2u * i;
  let sum = split_sum(at);
  let v = Vec8(x[at] + sum.lo, x[at + 1u] + sum.hi);
  x[at] = v.lo;
  x[at + 1u] = v.hi;
  return v;
}
