// The drafts of each slot, u32 [slots, 2 MAX_ROWS - 1]: how many are to be verified (a number above the rows there are
// means all), then their tokens, then the row of each one's parent: row 0 is the root, draft i has row i + 1. Chains
// store no parents; in their place is the draft's confidence in each token, where it gives one (f32 bits, see
// src/speculate/policy.ts). src/model/device_layout.ts mirrors it.

override MAX_ROWS: u32; // rows that a slot may have in any round, its pending token included

fn draft_count(slot: u32) -> u32 {
  return slot * (2u * MAX_ROWS - 1u);
}

fn draft_token(slot: u32, i: u32) -> u32 {
  return draft_count(slot) + 1u + i;
}

fn draft_parent(slot: u32, i: u32) -> u32 {
  return draft_count(slot) + MAX_ROWS + i;
}

// Of a chain.
fn draft_confidence(slot: u32, i: u32) -> u32 {
  return draft_parent(slot, i);
}
