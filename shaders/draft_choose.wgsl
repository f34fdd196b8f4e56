// The draft's top-1 token in the target's vocabulary:
//   drafts[lanes[b], STEP] = i + offsets[i], i = argmax(logits[b]) (the lowest on a tie).
// offsets is d2t of EAGLE-3 (target id minus draft id), zeros where the vocabulary is not reduced.
//
// One workgroup per lane of the batch.

override VOCAB: u32;
override STRIDE: u32; // row stride of logits
override STEP: u32;
override LANES: u32;

@group(0) @binding(0) var<storage, read> logits: array<f32>; // [batch, STRIDE]
@group(0) @binding(1) var<storage, read> offsets: array<i32>; // [VOCAB]
@group(0) @binding(2) var<storage, read> lanes: array<u32>; // [batch] slot of each lane
@group(0) @binding(3) var<storage, read_write> drafts: array<u32>; // [slots, MAX_STEPS]

var<workgroup> best_score: array<f32, LANES>;
var<workgroup> best_token: array<u32, LANES>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = tile.x * STRIDE;
  var score = -3.4028234e38;
  var token = 0u;
  for (var i = lane; i < VOCAB; i += LANES) {
    if (logits[row + i] > score) {
      score = logits[row + i];
      token = i;
    }
  }
  best_score[lane] = score;
  best_token[lane] = token;
  workgroupBarrier();
  let slot = lanes[tile.x];
  if (lane != 0u || slot == NO_SLOT) {
    return;
  }
  for (var l = 1u; l < LANES; l++) {
    let other = best_score[l];
    let first = other == score && best_token[l] < token;
    if (other > score || first) {
      score = other;
      token = best_token[l];
    }
  }
  drafts[slot * MAX_STEPS + STEP] = u32(i32(token) + offsets[token]);
}
