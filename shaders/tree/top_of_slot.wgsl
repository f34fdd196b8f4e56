// The most probable tokens of a sequence's row go to its slot, and the first of them is also its draft
// token 0: chains begin with it.

//use fragments/drafts

@group(0) @binding(3) var<storage, read> batch_slots: array<u32>; // [rows] slot of each, or NO_PLACE
@group(0) @binding(4) var<storage, read_write> drafts: array<u32>; // [slots], see drafts.wgsl

fn place(row: u32) -> u32 {
  return batch_slots[row];
}

fn first(place: u32, token: u32, probability: f32) {
  drafts[draft_token(place, 0u)] = token;
}
