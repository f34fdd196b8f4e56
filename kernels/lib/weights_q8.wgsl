// Groups of 32 weights along k: w = q * scale, q a signed byte, scale f16. Packed by quantize.wgsl.
//
// q + 128 in the mantissa of 256.0 is 384 + q without a conversion of integers.

//#import lib/weights_integers

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>; // [SHARD_ROWS, COLS / 16]
@group(0) @binding(16) var<storage, read> scales: array<u32>; // f16 [SHARD_ROWS, COLS / 32]

struct PackedBlock {
  words: vec4<u32>, // the lane's next two vec8s
  scales: u32, // f16 of each
}

// Lanes 4q .. 4q + 3 are in the same groups: one word for the four of them. Fewer than four lanes
// have both vec8s in one group, and the groups are in the order of k.
fn load_scales(i: u32) -> u32 {
  if (packed_lanes() >= 4u) {
    return scales[i / 4u];
  }
  let group = i / 2u;
  return ((scales[group / 2u] >> (16u * (group % 2u))) & 0xffffu) * 0x10001u;
}

fn load_block(i: u32) -> PackedBlock {
  return PackedBlock(weights[i], load_scales(i));
}

fn packed_0(block: PackedBlock) -> Packed {
  return Packed(block.words.x, block.words.y, unpack2x16float(block.scales).x);
}

fn packed_1(block: PackedBlock) -> Packed {
  return Packed(block.words.z, block.words.w, unpack2x16float(block.scales).y);
}

fn mantissas(word: u32) -> vec4<f32> {
  let u = word ^ 0x80808080u;
  let fields = vec4<u32>(u << 15u, u << 7u, u >> 1u, u >> 9u) & vec4<u32>(0x7f8000u);
  return bitcast<vec4<f32>>(fields | vec4<u32>(0x43800000u));
}

fn whole_bytes(p: Packed) -> Whole {
  return Whole(Vec8(vec4<f32>(unpack4xI8(p.lo)), vec4<f32>(unpack4xI8(p.hi))), p.scale);
}

// Both products have at most 20 bits: w is exact.
fn vec8_bytes(p: Packed) -> Vec8 {
  let scale = vec4<f32>(p.scale);
  let z = vec4<f32>(-384.0 * p.scale);
  return Vec8(fma(mantissas(p.lo), scale, z), fma(mantissas(p.hi), scale, z));
}

fn whole_0(block: PackedBlock) -> Whole {
  return whole_bytes(packed_0(block));
}

fn whole_1(block: PackedBlock) -> Whole {
  return whole_bytes(packed_1(block));
}

fn vec8_0(block: PackedBlock) -> Vec8 {
  return vec8_bytes(packed_0(block));
}

fn vec8_1(block: PackedBlock) -> Vec8 {
  return vec8_bytes(packed_1(block));
}
