// Groups of 32 weights along k: w = (u - 128) * scale, u a byte, scale f16. Packed by quantize.wgsl.
//
// A byte in the mantissa of 256.0 is 256 + u, so w = (256 + u) * scale - 384 * scale without a
// conversion of integers. Both products have at most 20 bits: w is exact.

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>; // [SHARD_ROWS, COLS / 16]
@group(0) @binding(15) var<storage, read> scales: array<u32>; // f16 [SHARD_ROWS, COLS / 32]

struct Raw {
  words: vec4<u32>, // the lane's next two eights
  scales: u32, // f16 of each
}

struct Eight {
  lo: vec4<f32>,
  hi: vec4<f32>,
}

// Lanes 4q .. 4q + 3 are in the same groups: one word for the four of them. Fewer than four lanes
// have both eights in one group, and the groups lie in the order of k.
fn load_scales(i: u32) -> u32 {
  if (LANES >= 4u) {
    return scales[i / 4u];
  }
  let group = i / 2u;
  return ((scales[group / 2u] >> (16u * (group % 2u))) & 0xffffu) * 0x10001u;
}

fn load_raw(i: u32) -> Raw {
  return Raw(weights[i], load_scales(i));
}

fn bytes(word: u32, scale: f32) -> vec4<f32> {
  let u = vec4<u32>(word << 15u, word << 7u, word >> 1u, word >> 9u) & vec4<u32>(0x7f8000u);
  return fma(
    bitcast<vec4<f32>>(u | vec4<u32>(0x43800000u)),
    vec4<f32>(scale),
    vec4<f32>(-384.0 * scale),
  );
}

fn eight_0(raw: Raw) -> Eight {
  let scale = unpack2x16float(raw.scales).x;
  return Eight(bytes(raw.words.x, scale), bytes(raw.words.y, scale));
}

fn eight_1(raw: Raw) -> Eight {
  let scale = unpack2x16float(raw.scales).y;
  return Eight(bytes(raw.words.z, scale), bytes(raw.words.w, scale));
}
