// draft_choose.wgsl with the draft's confidence, the highest probability of its distribution at the position:
//   1 / sum over slices s of sum_s exp(M_s - M), M the largest logit of all
// without temperature, in the slot's drafts beside the token; 0 where logits are no numbers.
//
// One workgroup per place in the batch. Slot:
//   next: as in draft_choose.wgsl.

//use fragments/rows
//use fragments/drafts
//use fragments/argmax
//use fragments/workgroup_argmax
//use fragments/workgroup_sum
//use tree/rank
//use next

override PARTIALS: u32; // slices a row
override STEP: u32;
override LANES: u32;

alias Sum = f32;

@group(0) @binding(0) var<storage, read> partials: array<vec4<u32>>; // [batch, PARTIALS], see partial_softmax.wgsl
@group(0) @binding(1) var<storage, read> offsets: array<i32>; // [draft vocabulary]
@group(0) @binding(2) var<storage, read> batch_slots: array<u32>; // [batch] slot of each place, or NO_SLOT
@group(0) @binding(3) var<storage, read_write> drafts: array<u32>; // [slots], see drafts.wgsl

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = tile.x * PARTIALS;
  var best = NO_ARGMAX;
  for (var s = lane; s < PARTIALS; s += LANES) {
    best = better(best, partials[row + s].xy);
  }
  best = best_of(best, lane);
  let largest = logit_of(best.x);
  var sum = 0.0;
  for (var s = lane; s < PARTIALS; s += LANES) {
    let slice = partials[row + s];
    sum += select(0.0, bitcast<f32>(slice.z) * exp(logit_of(slice.x) - largest), slice.x > NOTHING);
  }
  sum = total(sum, lane);
  let slot = batch_slots[tile.x];
  if (lane != 0u || slot == NO_SLOT) {
    return;
  }
  let token = u32(i32(best.y) + offsets[best.y]);
  drafts[draft_token(slot, STEP)] = token;
  let sound = best.x != BROKEN && best.x > NOTHING;
  drafts[draft_confidence(slot, STEP)] = select(0u, bitcast<u32>(min(1.0, 1.0 / sum)), sound);
  next(tile.x, slot, token);
}
