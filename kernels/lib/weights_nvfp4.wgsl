// Groups of 16 weights along k: w = e2m1 * scale, the scale f16 * 2^-12 (NVFP4, whose two scales are one here). A word
// has the scales of 32 weights. Packed by src/model/checkpoint/quantized/lane_order.ts. All products are exact.

//#import lib/vec8
//#import lib/e2m1

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>; // [SHARD_ROWS, COLS / 32]
@group(0) @binding(16) var<storage, read> scales: array<vec4<u32>>; // two f16 [SHARD_ROWS, COLS / 32]

struct PackedBlock {
  words: vec4<u32>, // the lane's next four vec8s
  scales: vec4<f32>, // 2^14 of each
}

const LARGE = 4.0; // 2^14 2^-12

fn scales_of(group: u32) -> vec2<f32> {
  return unpack2x16float(scales[group / 4u][group % 4u]) * LARGE;
}

// Lanes 4q .. 4q + 3 are in the same 32 weights, two of them in each half. With two lanes every other vec8 is in a
// second half, with one lane every other two; and the words are in the order of k.
fn load_scales(i: u32) -> vec4<f32> {
  if (packed_lanes() >= 4u) {
    let words = scales[i / 4u] >> vec4<u32>(i % 4u / 2u * 16u);
    return vec4<f32>(
      unpack2x16float(words.x).x,
      unpack2x16float(words.y).x,
      unpack2x16float(words.z).x,
      unpack2x16float(words.w).x,
    ) * LARGE;
  }
  if (packed_lanes() == 2u) {
    let group = i - i % 2u;
    return vec4<f32>(scales_of(group), scales_of(group + 1u));
  }
  return scales_of(i).xxyy;
}

fn load_block(i: u32) -> PackedBlock {
  return PackedBlock(weights[i], load_scales(i));
}

fn large_0(block: PackedBlock) -> f32 {
  return block.scales.x;
}

fn large_1(block: PackedBlock) -> f32 {
  return block.scales.y;
}

fn large_2(block: PackedBlock) -> f32 {
  return block.scales.z;
}

fn large_3(block: PackedBlock) -> f32 {
  return block.scales.w;
}
