// A row-major matrix of f16, packed two to a u32 (low half first).

//#import lib/vec8

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>; // [SHARD_ROWS, COLS / 8]

alias PackedBlock = vec4<u32>; // eight consecutive weights as stored

fn load_block(i: u32) -> PackedBlock {
  return weights[i];
}

fn vec8_0(p: PackedBlock) -> Vec8 {
  return Vec8(
    vec4<f32>(unpack2x16float(p.x), unpack2x16float(p.y)),
    vec4<f32>(unpack2x16float(p.z), unpack2x16float(p.w)),
  );
}
