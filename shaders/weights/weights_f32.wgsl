// A row-major matrix of f32.

//use fragments/vec8

@group(0) @binding(0) var<storage, read> weights: array<vec4<f32>>; // [SHARD_ROWS, COLS / 4]

alias Raw = Eight; // eight consecutive weights as they lie in memory

fn load_raw(i: u32) -> Raw {
  return Eight(weights[2u * i], weights[2u * i + 1u]);
}

fn eight_0(raw: Raw) -> Eight {
  return raw;
}
