// Weights of matmuls on matrix units, bf16 or f16: a block is eight of them, in the order of k.

//use tensor/to_f16

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>; // [MATRIX_ROWS, COLS / 8]

alias Loaded = vec4<u32>;

fn load_weights(i: u32) -> Loaded {
  return weights[i];
}

fn halves_0(block: Loaded, scale: f32) -> vec4<u32> {
  return eight_halves(block, scale);
}

fn eight_of_x(a: vec4<f32>, b: vec4<f32>) -> vec4<u32> {
  return packed(a, b);
}

fn vec8_of(block: u32) -> u32 {
  return block;
}

fn in_stage(chunk: u32) -> u32 {
  return chunk;
}
