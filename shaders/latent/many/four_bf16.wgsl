// Fours of latents kept in bf16: word w of a row is (element w, element w + half the row), low half first.

fn load_four(row: u32, e: u32) -> vec4<u32> {
  return keys[row * (WIDTH4 / 2u) + e % (WIDTH4 / 2u)];
}

fn four_of(packed: vec4<u32>, e: u32) -> vec4<f32> {
  let words = select(packed & vec4<u32>(0xffff0000u), packed << vec4<u32>(16u), e < WIDTH4 / 2u);
  return bitcast<vec4<f32>>(words);
}
