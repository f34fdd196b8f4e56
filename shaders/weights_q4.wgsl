// Groups of 32 weights along k: w = (u - 8) * scale, u of 4 bits, scale f16. Packed by quantize.wgsl.
//
// A nibble in the mantissa of 2^p is 2^p + u at p = 4, 8 or 12, by how far up it lies: three nibbles
// a shift. w = (2^p + u) * scale - (2^p + 8) * scale without a conversion of integers. Both
// products have at most 24 bits: w is exact.

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>; // [SHARD_ROWS, COLS / 32]
@group(0) @binding(15) var<storage, read> scales: array<vec2<u32>>; // f16 [SHARD_ROWS, COLS / 32]

struct Raw {
  words: vec4<u32>, // the lane's next four eights
  scales: vec2<u32>, // f16 of each
}

struct Eight {
  lo: vec4<f32>,
  hi: vec4<f32>,
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

const P12 = 0x45800000u; // 4096.0
const P8 = 0x43800000u; // 256.0
const P4 = 0x41800000u; // 16.0

// Nibble n of the word is weight n.
fn nibbles(word: u32, scale: f32) -> Eight {
  let a = word << 11u; // 0, 1, 2 at bits 11, 15, 19
  let b = word >> 1u; // 3, 4, 5
  let c = word >> 9u; // 6, 7 at bits 15, 19
  let lo = (vec4<u32>(a, a, a, b) & vec4<u32>(0x7800u, 0x78000u, 0x780000u, 0x7800u)) |
    vec4<u32>(P12, P8, P4, P12);
  let hi = (vec4<u32>(b, b, c, c) & vec4<u32>(0x78000u, 0x780000u, 0x78000u, 0x780000u)) |
    vec4<u32>(P8, P4, P8, P4);
  let z = vec3<f32>(-4104.0, -264.0, -24.0) * scale;
  return Eight(
    fma(bitcast<vec4<f32>>(lo), vec4<f32>(scale), z.xyzx),
    fma(bitcast<vec4<f32>>(hi), vec4<f32>(scale), z.yzyz),
  );
}

fn eight_0(raw: Raw) -> Eight {
  return nibbles(raw.words.x, unpack2x16float(raw.scales.x).x);
}

fn eight_1(raw: Raw) -> Eight {
  return nibbles(raw.words.y, unpack2x16float(raw.scales.x).y);
}

fn eight_2(raw: Raw) -> Eight {
  return nibbles(raw.words.z, unpack2x16float(raw.scales.y).x);
}

fn eight_3(raw: Raw) -> Eight {
  return nibbles(raw.words.w, unpack2x16float(raw.scales.y).y);
}
