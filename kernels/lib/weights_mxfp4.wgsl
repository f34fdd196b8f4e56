// Groups of 32 weights along k: w = e2m1 * 2^(exponent - 127), the exponent a byte (OCP Microscaling Formats, MXFP4).
// Packed by src/model/checkpoint/quantized/lane_order.ts: nibble n of a vec8's word is weight n.
//
// Halves of numbers are multiplied with twice the scale, which is a normal number for every exponent up to 252: w is exact.

//#import lib/vec8
//#import lib/e2m1

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>; // [SHARD_ROWS, COLS / 32]
@group(0) @binding(16) var<storage, read> scales: array<u32>; // bytes [SHARD_ROWS, COLS / 32]

struct PackedBlock {
  words: vec4<u32>, // the lane's next four vec8s
  exponents: vec4<u32>, // of each
}

fn exponent_of(group: u32) -> u32 {
  return (scales[group / 4u] >> (8u * (group % 4u))) & 0xffu;
}

// Lanes 4q .. 4q + 3 are in the same groups: one load for the four of them. Fewer than four lanes
// have two vec8s of a block in one group, and the groups are in the order of k.
fn load_exponents(i: u32) -> vec4<u32> {
  if (packed_lanes() >= 4u) {
    return (vec4<u32>(scales[i / 4u]) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(0xffu);
  }
  let group = i - i % packed_lanes();
  return vec2<u32>(exponent_of(group), exponent_of(group + packed_lanes() / 2u)).xxyy;
}

fn load_block(i: u32) -> PackedBlock {
  return PackedBlock(weights[i], load_exponents(i));
}

fn eight(word: u32, exponent: u32) -> Vec8 {
  let scale = bitcast<f32>((exponent + 1u) << 23u);
  return Vec8(halves_of_e2m1(word) * scale, halves_of_e2m1(word >> 16u) * scale);
}

fn vec8_0(block: PackedBlock) -> Vec8 {
  return eight(block.words.x, block.exponents.x);
}

fn vec8_1(block: PackedBlock) -> Vec8 {
  return eight(block.words.y, block.exponents.y);
}

fn vec8_2(block: PackedBlock) -> Vec8 {
  return eight(block.words.z, block.exponents.z);
}

fn vec8_3(block: PackedBlock) -> Vec8 {
  return eight(block.words.w, block.exponents.w);
}
