// q4, four vec8s a block. q + 8 in the mantissa of 1024 is 1032 + q, four bits higher 1152 + 16 q.

//use weights/weights_q4
//use tensor/load/integers

alias Loaded = PackedBlock;

fn load_weights(i: u32) -> Loaded {
  return load_block(i);
}

fn low_two(word: u32, scale: vec2<f16>) -> u32 {
  return bitcast<u32>(less((word & 0x000f000fu) ^ 0x64086408u, 1032.0h) * scale);
}

fn high_two(word: u32, scale: vec2<f16>) -> u32 {
  let shifted = bitcast<vec2<f16>>((word & 0x00f000f0u) ^ 0x64806480u);
  return bitcast<u32>(fma(shifted, vec2(0.0625h), vec2(-72.0h)) * scale);
}

fn eight(word: u32, group: f32) -> vec4<u32> {
  let scale = vec2<f16>(f16(group));
  return vec4(
    low_two(word, scale),
    low_two(word >> 8u, scale),
    high_two(word, scale),
    high_two(word >> 8u, scale),
  );
}

fn halves_0(block: Loaded, scale: f32) -> vec4<u32> {
  return eight(block.words.x, unpack2x16float(block.scales.x).x * scale);
}

fn halves_1(block: Loaded, scale: f32) -> vec4<u32> {
  return eight(block.words.y, unpack2x16float(block.scales.x).y * scale);
}

fn halves_2(block: Loaded, scale: f32) -> vec4<u32> {
  return eight(block.words.z, unpack2x16float(block.scales.y).x * scale);
}

fn halves_3(block: Loaded, scale: f32) -> vec4<u32> {
  return eight(block.words.w, unpack2x16float(block.scales.y).y * scale);
}
