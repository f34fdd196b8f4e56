// Groups of 32 weights along k: w = e2m1 * 2^(exponent - 127), the exponent a byte (OCP Microscaling Formats, MXFP4).
// Packed by src/model/checkpoint/quantized/lane_order.ts. 2^-14 of a number times 2^14 of its scale, which is a number
// for exponents up to 240, is exact.

//#import lib/vec8
//#import lib/e2m1

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>; // [SHARD_ROWS, COLS / 32]
@group(0) @binding(16) var<storage, read> scales: array<u32>; // bytes [SHARD_ROWS, COLS / 32]

struct PackedBlock {
  words: vec4<u32>, // the lane's next four vec8s
  exponents: u32, // a byte of each
}

// Lanes 4q .. 4q + 3 are in the same groups: one word for the four of them. With two lanes two vec8s of a block are in
// one group, with one lane all four, and the groups are in the order of k.
fn load_exponents(i: u32) -> u32 {
  if (packed_lanes() >= 4u) {
    return scales[i / 4u];
  }
  let group = i - i % packed_lanes();
  let here = scales[group / 4u] >> (8u * (group % 4u));
  if (packed_lanes() == 2u) {
    return ((here & 0xffu) | ((here & 0xff00u) << 8u)) * 0x101u;
  }
  return (here & 0xffu) * 0x1010101u;
}

fn load_block(i: u32) -> PackedBlock {
  return PackedBlock(weights[i], load_exponents(i));
}

// 2^14 times a scale, whose exponent is there times 2^23, with other bits beside it.
fn large_of(exponent: u32) -> f32 {
  return bitcast<f32>((exponent & 0x7f800000u) + (14u << 23u));
}

fn large_0(block: PackedBlock) -> f32 {
  return large_of(block.exponents << 23u);
}

fn large_1(block: PackedBlock) -> f32 {
  return large_of(block.exponents << 15u);
}

fn large_2(block: PackedBlock) -> f32 {
  return large_of(block.exponents << 7u);
}

fn large_3(block: PackedBlock) -> f32 {
  return large_of(block.exponents >> 1u);
}
