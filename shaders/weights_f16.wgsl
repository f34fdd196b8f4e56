// Eight consecutive weights of a row-major matrix, f16 packed two to a u32 (low half first).

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>; // [SHARD_ROWS, COLS / 8]

struct Eight {
  lo: vec4<f32>,
  hi: vec4<f32>,
}

fn weights8(i: u32) -> Eight {
  let p = weights[i];
  return Eight(
    vec4<f32>(unpack2x16float(p.x), unpack2x16float(p.y)),
    vec4<f32>(unpack2x16float(p.z), unpack2x16float(p.w)),
  );
}
