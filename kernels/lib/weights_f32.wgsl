// A row-major matrix of f32.

//#import lib/vec8

@group(0) @binding(0) var<storage, read> weights: array<vec4<f32>>; // [SHARD_ROWS, COLS / 4]

alias PackedBlock = Vec8; // eight consecutive weights as stored

fn load_block(i: u32) -> PackedBlock {
  return Vec8(weights[2u * i], weights[2u * i + 1u]);
}

fn vec8_0(block: PackedBlock) -> Vec8 {
  return block;
}
