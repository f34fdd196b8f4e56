// The draft's top-1 token in the target's vocabulary:
//   draft token STEP of slot batch_slots[b] = i + offsets[i], i = the token of row b's largest logit.
// offsets is d2t of EAGLE-3 (target id minus draft id), zeros where the vocabulary is not reduced.
// Logits that are no numbers give some token: the target will not agree.
//
// One workgroup per place in the batch. Slots:
//   partial: what is kept of each part of the columns (partial/partial_*.wgsl).
//   confidence: `fn tell(slot, all)`, what is told of the choice besides (draft_confidence*.wgsl).
//   next: `fn next(place, slot, token)`, what else is done with the token (draft_next_*.wgsl).

//use fragments/rows
//use fragments/drafts
//use partial
//use partial/workgroup_partial
//use confidence
//use next

override PARTIALS: u32; // parts of a row's columns
override STEP: u32;
override LANES: u32;

@group(0) @binding(0) var<storage, read> partials: array<Partial>; // [batch, PARTIALS]
@group(0) @binding(1) var<storage, read> offsets: array<i32>; // [draft vocabulary]
@group(0) @binding(2) var<storage, read> batch_slots: array<u32>; // [batch] slot of each place, or NO_SLOT
@group(0) @binding(3) var<storage, read_write> drafts: array<u32>; // [slots], see drafts.wgsl

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  var all = NO_PARTIAL;
  for (var i = lane; i < PARTIALS; i += $FOURu * LANES) {
    //for j in FOUR
    let partial$j = partials[tile.x * PARTIALS + min(i + $ju * LANES, PARTIALS - 1u)];
    //end
    //for j in FOUR
    all = joined(all, select(NO_PARTIAL, partial$j, i + $ju * LANES < PARTIALS));
    //end
  }
  all = joined_lanes(all, lane);
  let slot = batch_slots[tile.x];
  if (lane != 0u || slot == NO_SLOT) {
    return;
  }
  let token = u32(i32(all.y) + offsets[all.y]);
  drafts[draft_token(slot, STEP)] = token;
  tell(slot, all);
  next(tile.x, slot, token);
}
