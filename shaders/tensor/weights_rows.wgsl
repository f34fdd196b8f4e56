// Weights row by row, for matmuls on matrix units that bring them through workgroup memory by eights.
//
//   weight_row(row): where a row begins.
//   load_weights(start, chunk): eight of it, from 8 * chunk of k on; tensor/to_f16.wgsl makes f16 of them.

// [MATRIX_ROWS, COLS / 8]: eight bf16, or where $HALVED is 1 eight f16 that halve_weights.wgsl made of them
@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;

alias EightWeights = vec4<u32>;

fn weight_row(row: u32) -> u32 {
  return row * (COLS / 8u);
}

fn load_weights(start: u32, chunk: u32) -> EightWeights {
  return weights[start + chunk];
}
