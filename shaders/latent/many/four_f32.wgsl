// Fours of latents kept in f32.

fn load_four(row: u32, e: u32) -> vec4<u32> {
  return keys[row * WIDTH4 + e];
}

fn four_of(packed: vec4<u32>, e: u32) -> vec4<f32> {
  return bitcast<vec4<f32>>(packed);
}
