// q8: the largest weight of a group is 127 or -127.

const BLOCK_VEC8S = 2u;
const LEAST = -127.0;
const MOST = 127.0;

fn scale_of(least: f32, most: f32) -> f32 {
  return max(most, -least) * 0.007874015718698502; // f32 nearest to 1 / 127
}

fn bytes_of(q: vec4<i32>) -> u32 {
  let u = (vec4<u32>(q) & vec4<u32>(255u)) << vec4<u32>(0u, 8u, 16u, 24u);
  return u.x | u.y | u.z | u.w;
}

fn store_vec8(block: u32, part: u32, lo: vec4<i32>, hi: vec4<i32>) {
  let at = 4u * block + 2u * part;
  words[at] = bytes_of(lo);
  words[at + 1u] = bytes_of(hi);
}
