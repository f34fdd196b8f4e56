// counts[slot, t] += times that a round emitted token t for the slot, see adjust.wgsl.
//
// One invocation per sequence of the batch: no two have the same slot.

//#import lib/constants

override VOCAB: u32;
override RESULT: u32; // words of a sequence's result

@group(0) @binding(0) var<storage, read> batch_slots: array<u32>; // [batch] slot of each sequence
@group(0) @binding(1) var<storage, read> results: array<u32>; // [batch, RESULT]: tokens emitted, those tokens
@group(0) @binding(2) var<storage, read_write> counts: array<u32>; // [slots, VOCAB]

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) tile: vec3<u32>) {
  let slot = batch_slots[tile.x];
  if (slot == NO_SLOT) {
    return;
  }
  let first = tile.x * RESULT;
  for (var j = 1u; j <= results[first]; j++) {
    let token = results[first + j];
    if (token < VOCAB) { // broken logits give none
      counts[slot * VOCAB + token]++;
    }
  }
}
