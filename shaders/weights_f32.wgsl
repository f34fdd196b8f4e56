// Eight consecutive weights of a row-major f32 matrix.

@group(0) @binding(0) var<storage, read> weights: array<vec4<f32>>; // [SHARD_ROWS, COLS / 4]

struct Eight {
  lo: vec4<f32>,
  hi: vec4<f32>,
}

fn weights8(i: u32) -> Eight {
  return Eight(weights[2u * i], weights[2u * i + 1u]);
}
