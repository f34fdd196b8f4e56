// q8, two vec8s a block. q + 128 in the mantissa of 1024 is 1152 + q.

//use weights/weights_q8
//use tensor/load/integers

alias Loaded = PackedBlock;

fn load_weights(i: u32) -> Loaded {
  return load_block(i);
}

fn two(word: u32, scale: vec2<f16>) -> u32 {
  return bitcast<u32>(less((word & 0x00ff00ffu) ^ 0x64806480u, 1152.0h) * scale);
}

fn eight(lo: u32, hi: u32, group: f32) -> vec4<u32> {
  let scale = vec2<f16>(f16(group));
  return vec4(two(lo, scale), two(lo >> 8u, scale), two(hi, scale), two(hi >> 8u, scale));
}

fn halves_0(block: Loaded, scale: f32) -> vec4<u32> {
  return eight(block.words.x, block.words.y, unpack2x16float(block.scales).x * scale);
}

fn halves_1(block: Loaded, scale: f32) -> vec4<u32> {
  return eight(block.words.z, block.words.w, unpack2x16float(block.scales).y * scale);
}
