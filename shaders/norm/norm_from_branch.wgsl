// Input of rms_norm: row r of the sums of a split-K matmul: the output of a branch of a layer, normed
// before it is added to the residual stream.

//use fragments/split_k_sums

@group(0) @binding(0) var<storage, read> sums: array<vec4<f32>>; // [SPLIT_K, rows, COLS / 4]

fn source(row: u32, lane: u32) -> u32 {
  return row;
}

fn load(row: u32, i: u32) -> Vec8 {
  return split_sum(row * (COLS / 4u) + 2u * i);
}
