// Groups of 32 weights along k: w = q * scale, q a signed nibble, scale f16. Packed by quantize.wgsl:
// byte i of a vec8's word has weight i in its low and weight 4 + i in its high nibble.
//
// q + 8 in the mantissa of 2^p is 2^p + 8 + q at p = 4, 8 or 12, by its place in the word: three nibbles
// a shift, without a conversion of integers.

//#import lib/weights_integers

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>; // [SHARD_ROWS, COLS / 32]
@group(0) @binding(16) var<storage, read> scales: array<vec2<u32>>; // f16 [SHARD_ROWS, COLS / 32]

struct PackedBlock {
  words: vec4<u32>, // the lane's next four vec8s
  scales: vec2<u32>, // f16 of each
}

// Group `i` of the matrix in the order of k, twice.
fn scale_twice(i: u32) -> u32 {
  return ((scales[i / 4u][i / 2u % 2u] >> (16u * (i % 2u))) & 0xffffu) * 0x10001u;
}

// Lanes 4q .. 4q + 3 are in the same groups: one load for the four of them. Fewer than four lanes
// have two vec8s of a block in one group, and the groups are in the order of k.
fn load_scales(i: u32) -> vec2<u32> {
  if (packed_lanes() >= 4u) {
    return scales[i / 4u];
  }
  let group = i - i % packed_lanes();
  return vec2<u32>(scale_twice(group), scale_twice(group + packed_lanes() / 2u));
}

fn load_block(i: u32) -> PackedBlock {
  return PackedBlock(weights[i], load_scales(i));
}

// A nibble at the top of a byte is 16 q.
fn packed_word(word: u32, scale: f32) -> Packed {
  return Packed((word << 4u) & 0xf0f0f0f0u, word & 0xf0f0f0f0u, scale * 0.0625);
}

const P12 = 0x45800000u; // 4096.0
const P8 = 0x43800000u; // 256.0
const P4 = 0x41800000u; // 16.0
const BIAS_LO = vec4<f32>(4104.0, 24.0, 264.0, 264.0);
const BIAS_HI = vec4<f32>(264.0, 4104.0, 24.0, 24.0);

// BIAS + q
fn mantissas(word: u32) -> Vec8 {
  let u = word ^ 0x88888888u;
  let a = u << 11u; // nibbles 0, 1, 2 at bits 11, 15, 19
  let b = u >> 1u; // 3, 4, 5
  let c = u >> 9u; // 6, 7 at bits 15, 19
  let lo = (vec4<u32>(a, a, b, c) & vec4<u32>(0x7800u, 0x780000u, 0x78000u, 0x78000u)) |
    vec4<u32>(P12, P4, P8, P8);
  let hi = (vec4<u32>(a, b, b, c) & vec4<u32>(0x78000u, 0x7800u, 0x780000u, 0x780000u)) |
    vec4<u32>(P8, P12, P4, P4);
  return Vec8(bitcast<vec4<f32>>(lo), bitcast<vec4<f32>>(hi));
}

fn whole_word(word: u32, scale: f32) -> Whole {
  let u = mantissas(word);
  return Whole(Vec8(u.lo - BIAS_LO, u.hi - BIAS_HI), scale);
}

// Both products have at most 24 bits: w is exact.
fn vec8_word(word: u32, scale: f32) -> Vec8 {
  let u = mantissas(word);
  return Vec8(
    fma(u.lo, vec4<f32>(scale), -BIAS_LO * scale),
    fma(u.hi, vec4<f32>(scale), -BIAS_HI * scale),
  );
}

fn packed_0(block: PackedBlock) -> Packed {
  return packed_word(block.words.x, unpack2x16float(block.scales.x).x);
}

fn packed_1(block: PackedBlock) -> Packed {
  return packed_word(block.words.y, unpack2x16float(block.scales.x).y);
}

fn packed_2(block: PackedBlock) -> Packed {
  return packed_word(block.words.z, unpack2x16float(block.scales.y).x);
}

fn packed_3(block: PackedBlock) -> Packed {
  return packed_word(block.words.w, unpack2x16float(block.scales.y).y);
}

fn whole_0(block: PackedBlock) -> Whole {
  return whole_word(block.words.x, unpack2x16float(block.scales.x).x);
}

fn whole_1(block: PackedBlock) -> Whole {
  return whole_word(block.words.y, unpack2x16float(block.scales.x).y);
}

fn whole_2(block: PackedBlock) -> Whole {
  return whole_word(block.words.z, unpack2x16float(block.scales.y).x);
}

fn whole_3(block: PackedBlock) -> Whole {
  return whole_word(block.words.w, unpack2x16float(block.scales.y).y);
}

fn vec8_0(block: PackedBlock) -> Vec8 {
  return vec8_word(block.words.x, unpack2x16float(block.scales.x).x);
}

fn vec8_1(block: PackedBlock) -> Vec8 {
  return vec8_word(block.words.y, unpack2x16float(block.scales.x).y);
}

fn vec8_2(block: PackedBlock) -> Vec8 {
  return vec8_word(block.words.z, unpack2x16float(block.scales.y).x);
}

fn vec8_3(block: PackedBlock) -> Vec8 {
  return vec8_word(block.words.w, unpack2x16float(block.scales.y).y);
}
