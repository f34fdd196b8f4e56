// Draft token STEP of each sequence becomes what was chosen for it; broken logits give token 0, with which the
// target will hardly agree.
//
// One invocation per sequence of the batch.

//#import lib/rows
//#import lib/drafts

override STEP: u32;

@group(0) @binding(0) var<storage, read> batch_slots: array<u32>; // [batch] slot of each sequence
@group(0) @binding(1) var<storage, read> chosen: array<u32>; // [batch]
@group(0) @binding(2) var<storage, read_write> drafts: array<u32>; // [slots], see drafts.wgsl

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) tile: vec3<u32>) {
  let slot = batch_slots[tile.x];
  if (slot != NO_SLOT) {
    let token = chosen[tile.x];
    drafts[draft_token(slot, STEP)] = select(token, 0u, token == NOT_A_TOKEN);
  }
}
