// The draft's top-1 token in the target's vocabulary:
//   draft token STEP of lanes[b] = i + offsets[i], i = the token of row b's largest logit.
// offsets is d2t of EAGLE-3 (target id minus draft id), zeros where the vocabulary is not reduced.
// Logits that are no numbers give some token: the target will not agree.
//
// One workgroup per lane of the batch. `Peak`, `best_of` and `next`, what else is to be done with
// the token, come from the files around this one.

override PEAKS: u32; // peaks a row
override STEP: u32;
override LANES: u32;

@group(0) @binding(0) var<storage, read> peaks: array<Peak>; // [batch, PEAKS]
@group(0) @binding(1) var<storage, read> offsets: array<i32>; // [draft vocabulary]
@group(0) @binding(2) var<storage, read> lanes: array<u32>; // [batch] slot of each lane
@group(0) @binding(3) var<storage, read_write> drafts: array<u32>; // [slots], see drafts.wgsl

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  var best = NO_PEAK;
  for (var i = lane; i < PEAKS; i += $FOURu * LANES) {
    //for j in FOUR
    let peak$j = peaks[tile.x * PEAKS + min(i + $ju * LANES, PEAKS - 1u)];
    //end
    //for j in FOUR
    best = better(best, peak$j);
    //end
  }
  best = best_of(best, lane);
  let slot = lanes[tile.x];
  if (lane != 0u || slot == NO_SLOT) {
    return;
  }
  let token = u32(i32(best.y) + offsets[best.y]);
  drafts[draft_token(slot, STEP)] = token;
  next(tile.x, slot, token);
}
