// As top_of_slot.wgsl, with the probability of draft token 0: the draft's confidence in it.

//use fragments/drafts

@group(0) @binding(3) var<storage, read> batch_slots: array<u32>; // [rows] slot of each, or NO_PLACE
@group(0) @binding(4) var<storage, read_write> drafts: array<u32>; // [slots], see drafts.wgsl

fn place(row: u32) -> u32 {
  return batch_slots[row];
}

fn first(place: u32, token: u32, probability: f32) {
  drafts[draft_token(place, 0u)] = token;
  drafts[draft_confidence(place, 0u)] = bitcast<u32>(probability);
}
