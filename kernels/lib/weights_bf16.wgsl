// A row-major matrix of bf16, packed two to a u32 (low half first). bf16 -> f32 is a shift: exact.

//#import lib/vec8

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>; // [SHARD_ROWS, COLS / 8]

alias PackedBlock = vec4<u32>; // eight consecutive weights as stored

fn load_block(i: u32) -> PackedBlock {
  return weights[i];
}

fn vec8_0(p: PackedBlock) -> Vec8 {
  return Vec8(
    bitcast<vec4<f32>>(vec4<u32>(p.x << 16u, p.x & 0xffff0000u, p.y << 16u, p.y & 0xffff0000u)),
    bitcast<vec4<f32>>(vec4<u32>(p.z << 16u, p.z & 0xffff0000u, p.w << 16u, p.w & 0xffff0000u)),
  );
}
