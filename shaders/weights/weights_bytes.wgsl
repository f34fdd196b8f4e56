// Groups of 32 weights along k that are bytes times an f32 scale: i8 and f8, which declare
// `fn bytes(word, scale)`, its four weights. Packed by src/model/checkpoint/quantized/lane_order.ts.

//use fragments/vec8

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>; // [SHARD_ROWS, COLS / 16]
@group(0) @binding(15) var<storage, read> scales: array<vec2<f32>>; // f32 [SHARD_ROWS, COLS / 32]

struct Raw {
  words: vec4<u32>, // the lane's next two eights
  scales: vec2<f32>, // of each
}

// Lanes 4q .. 4q + 3 are in the same groups: one load for the four of them. Fewer than four lanes
// have both eights in one group, and the groups lie in the order of k.
fn load_scales(i: u32) -> vec2<f32> {
  if (LANES >= 4u) {
    return scales[i / 4u];
  }
  let group = i / 2u;
  return vec2<f32>(scales[group / 2u][group % 2u]);
}

fn load_raw(i: u32) -> Raw {
  return Raw(weights[i], load_scales(i));
}

fn eight_0(raw: Raw) -> Eight {
  return Eight(bytes(raw.words.x, raw.scales.x), bytes(raw.words.y, raw.scales.x));
}

fn eight_1(raw: Raw) -> Eight {
  return Eight(bytes(raw.words.z, raw.scales.y), bytes(raw.words.w, raw.scales.y));
}
