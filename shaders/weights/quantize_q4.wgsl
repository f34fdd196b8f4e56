// q4: the largest weight of a group is -8, whatever its sign, as in llama.cpp's Q4_0: -8 is the
// integer that a symmetric range would not use. Of two as large the negative one.

const BLOCK_VEC8S = 4u;
const LEAST = -8.0;
const MOST = 7.0;

fn scale_of(least: f32, most: f32) -> f32 {
  return select(least, most, most > -least) * -0.125;
}

// Two's complement in the low nibble of each byte.
fn nibbles_of(q: vec4<i32>) -> u32 {
  let u = (vec4<u32>(q) & vec4<u32>(15u)) << vec4<u32>(0u, 8u, 16u, 24u);
  return u.x | u.y | u.z | u.w;
}

fn store_vec8(block: u32, part: u32, lo: vec4<i32>, hi: vec4<i32>) {
  words[4u * block + part] = nibbles_of(lo) | (nibbles_of(hi) << 4u);
}
