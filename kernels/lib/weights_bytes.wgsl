// Groups of 32 weights along k that are bytes times an f32 scale: i8 and f8, which declare
// `fn bytes(word, scale)`, its four weights. Packed by src/model/checkpoint/quantized/lane_order.ts.

//#import lib/vec8

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>; // [SHARD_ROWS, COLS / 16]
@group(0) @binding(16) var<storage, read> scales: array<vec2<f32>>; // f32 [SHARD_ROWS, COLS / 32]

struct PackedBlock {
  words: vec4<u32>, // the lane's next two vec8s
  scales: vec2<f32>, // of each
}

// Lanes 4q .. 4q + 3 are in the same groups: one load for the four of them. Fewer than four lanes
// have both vec8s in one group, and the groups are in the order of k.
fn load_scales(i: u32) -> vec2<f32> {
  if (packed_lanes() >= 4u) {
    return scales[i / 4u];
  }
  let group = i / 2u;
  return vec2<f32>(scales[group / 2u][group % 2u]);
}

fn load_block(i: u32) -> PackedBlock {
  return PackedBlock(weights[i], load_scales(i));
}

fn vec8_0(block: PackedBlock) -> Vec8 {
  return Vec8(bytes(block.words.x, block.scales.x), bytes(block.words.y, block.scales.x));
}

fn vec8_1(block: PackedBlock) -> Vec8 {
  return Vec8(bytes(block.words.z, block.scales.y), bytes(block.words.w, block.scales.y));
}
