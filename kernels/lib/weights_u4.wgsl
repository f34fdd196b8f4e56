// Groups of 32 weights along k: w = (u - zero) * scale, u of 4 bits. A word a group is the f32 scale
// with the zero, 0 to 16, in its five lowest bits: scales that were f16 or bf16 have none there, and
// the product of an integer of 5 bits with a scale of at most 19 is exact. Packed by
// src/model/checkpoint/quantized/lane_order.ts.
//
// A nibble in the mantissa of 2^p is 2^p + u at p = 4, 8 or 12, by its place in the word: three nibbles
// a shift, less 2^p + zero without a conversion of integers.

//#import lib/vec8

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>; // [SHARD_ROWS, COLS / 32]
@group(0) @binding(16) var<storage, read> scales: array<vec4<u32>>; // [SHARD_ROWS, COLS / 32]

struct PackedBlock {
  words: vec4<u32>, // the lane's next four vec8s
  groups: vec4<u32>, // of each
}

fn group_word(i: u32) -> u32 {
  return scales[i / 4u][i % 4u];
}

// Lanes 4q .. 4q + 3 are in the same groups: one load for the four of them. Fewer than four lanes
// have two vec8s of a block in one group, and the groups are in the order of k.
fn load_groups(i: u32) -> vec4<u32> {
  if (packed_lanes() >= 4u) {
    return scales[i / 4u];
  }
  let group = i - i % packed_lanes();
  return vec2<u32>(group_word(group), group_word(group + packed_lanes() / 2u)).xxyy;
}

fn load_block(i: u32) -> PackedBlock {
  return PackedBlock(weights[i], load_groups(i));
}

const P12 = 0x45800000u; // 4096.0
const P8 = 0x43800000u; // 256.0
const P4 = 0x41800000u; // 16.0

// Nibble n of the word is weight n.
fn nibbles(word: u32, group: u32) -> Vec8 {
  let a = word << 11u; // 0, 1, 2 at bits 11, 15, 19
  let b = word >> 1u; // 3, 4, 5
  let c = word >> 9u; // 6, 7 at bits 15, 19
  let lo = (vec4<u32>(a, a, a, b) & vec4<u32>(0x7800u, 0x78000u, 0x780000u, 0x7800u)) |
    vec4<u32>(P12, P8, P4, P12);
  let hi = (vec4<u32>(b, b, c, c) & vec4<u32>(0x78000u, 0x780000u, 0x78000u, 0x780000u)) |
    vec4<u32>(P8, P4, P8, P4);
  let scale = bitcast<f32>(group & 0xffffffe0u);
  let z = vec3<f32>(4096.0, 256.0, 16.0) + f32(group & 31u);
  return Vec8(
    (bitcast<vec4<f32>>(lo) - z.xyzx) * scale,
    (bitcast<vec4<f32>>(hi) - z.yzyz) * scale,
  );
}

fn vec8_0(block: PackedBlock) -> Vec8 {
  return nibbles(block.words.x, block.groups.x);
}

fn vec8_1(block: PackedBlock) -> Vec8 {
  return nibbles(block.words.y, block.groups.y);
}

fn vec8_2(block: PackedBlock) -> Vec8 {
  return nibbles(block.words.z, block.groups.z);
}

fn vec8_3(block: PackedBlock) -> Vec8 {
  return nibbles(block.words.w, block.groups.w);
}
