// Eight consecutive weights of a row-major matrix, bf16 packed two to a u32 (low half first).
// bf16 -> f32 is a shift: exact.

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>; // [SHARD_ROWS, COLS / 8]

struct Eight {
  lo: vec4<f32>,
  hi: vec4<f32>,
}

fn weights8(i: u32) -> Eight {
  let p = weights[i];
  return Eight(
    bitcast<vec4<f32>>(vec4<u32>(p.x << 16u, p.x & 0xffff0000u, p.y << 16u, p.y & 0xffff0000u)),
    bitcast<vec4<f32>>(vec4<u32>(p.z << 16u, p.z & 0xffff0000u, p.w << 16u, p.w & 0xffff0000u)),
  );
}
