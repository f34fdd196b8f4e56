// Groups of 32 weights along k: w = q * scale, q a signed nibble, scale f16. Packed by quantize.wgsl:
// byte i of an eight's word has weight i in its low and weight 4 + i in its high nibble.
//
// q + 8 in the mantissa of 2^p is 2^p + 8 + q at p = 4, 8 or 12, by how far up it lies: three nibbles
// a shift, without a conversion of integers.

//use weights/weights_integers

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>; // [SHARD_ROWS, COLS / 32]
@group(0) @binding(15) var<storage, read> scales: array<vec2<u32>>; // f16 [SHARD_ROWS, COLS / 32]

struct Raw {
  words: vec4<u32>, // the lane's next four eights
  scales: vec2<u32>, // f16 of each
}

// Group `i` of the matrix in the order of k, twice.
fn scale_twice(i: u32) -> u32 {
  return ((scales[i / 4u][i / 2u % 2u] >> (16u * (i % 2u))) & 0xffffu) * 0x10001u;
}

// Lanes 4q .. 4q + 3 are in the same groups: one load for the four of them. Fewer than four lanes
// have two eights of a raw in one group, and the groups lie in the order of k.
fn load_scales(i: u32) -> vec2<u32> {
  if (LANES >= 4u) {
    return scales[i / 4u];
  }
  let group = i - i % LANES;
  return vec2<u32>(scale_twice(group), scale_twice(group + LANES / 2u));
}

fn load_raw(i: u32) -> Raw {
  return Raw(weights[i], load_scales(i));
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
fn mantissas(word: u32) -> Eight {
  let u = word ^ 0x88888888u;
  let a = u << 11u; // nibbles 0, 1, 2 at bits 11, 15, 19
  let b = u >> 1u; // 3, 4, 5
  let c = u >> 9u; // 6, 7 at bits 15, 19
  let lo = (vec4<u32>(a, a, b, c) & vec4<u32>(0x7800u, 0x780000u, 0x78000u, 0x78000u)) |
    vec4<u32>(P12, P4, P8, P8);
  let hi = (vec4<u32>(a, b, b, c) & vec4<u32>(0x78000u, 0x7800u, 0x780000u, 0x780000u)) |
    vec4<u32>(P8, P12, P4, P4);
  return Eight(bitcast<vec4<f32>>(lo), bitcast<vec4<f32>>(hi));
}

fn whole_word(word: u32, scale: f32) -> Whole {
  let u = mantissas(word);
  return Whole(Eight(u.lo - BIAS_LO, u.hi - BIAS_HI), scale);
}

// Both products have at most 24 bits: w is exact.
fn eight_word(word: u32, scale: f32) -> Eight {
  let u = mantissas(word);
  return Eight(
    fma(u.lo, vec4<f32>(scale), -BIAS_LO * scale),
    fma(u.hi, vec4<f32>(scale), -BIAS_HI * scale),
  );
}

fn packed_0(raw: Raw) -> Packed {
  return packed_word(raw.words.x, unpack2x16float(raw.scales.x).x);
}

fn packed_1(raw: Raw) -> Packed {
  return packed_word(raw.words.y, unpack2x16float(raw.scales.x).y);
}

fn packed_2(raw: Raw) -> Packed {
  return packed_word(raw.words.z, unpack2x16float(raw.scales.y).x);
}

fn packed_3(raw: Raw) -> Packed {
  return packed_word(raw.words.w, unpack2x16float(raw.scales.y).y);
}

fn whole_0(raw: Raw) -> Whole {
  return whole_word(raw.words.x, unpack2x16float(raw.scales.x).x);
}

fn whole_1(raw: Raw) -> Whole {
  return whole_word(raw.words.y, unpack2x16float(raw.scales.x).y);
}

fn whole_2(raw: Raw) -> Whole {
  return whole_word(raw.words.z, unpack2x16float(raw.scales.y).x);
}

fn whole_3(raw: Raw) -> Whole {
  return whole_word(raw.words.w, unpack2x16float(raw.scales.y).y);
}

fn eight_0(raw: Raw) -> Eight {
  return eight_word(raw.words.x, unpack2x16float(raw.scales.x).x);
}

fn eight_1(raw: Raw) -> Eight {
  return eight_word(raw.words.y, unpack2x16float(raw.scales.x).y);
}

fn eight_2(raw: Raw) -> Eight {
  return eight_word(raw.words.z, unpack2x16float(raw.scales.y).x);
}

fn eight_3(raw: Raw) -> Eight {
  return eight_word(raw.words.w, unpack2x16float(raw.scales.y).y);
}
