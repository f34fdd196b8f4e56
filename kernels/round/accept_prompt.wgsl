// Ends prompts: the choice after a prompt's last row becomes the slot's pending token and the token of the prompt's
// last draft-extend row.
//
// One invocation per prompt. last[i] is the last row of the prompt in slot batch_slots[i].

//#import lib/rows

@group(0) @binding(0) var<storage, read> batch_slots: array<u32>; // [batch]
@group(0) @binding(1) var<storage, read> last: array<u32>; // [batch]
@group(0) @binding(2) var<storage, read> chosen: array<u32>; // [batch]
@group(0) @binding(3) var<storage, read_write> slots: array<Slot>; // [slots]
@group(0) @binding(4) var<storage, read_write> extend: array<Row>; // [rows]
@group(0) @binding(5) var<storage, read_write> results: array<vec2<u32>>; // [batch]: tokens emitted, the token

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) place: vec3<u32>) {
  let i = place.x;
  let slot = batch_slots[i];
  if (slot == NO_SLOT) {
    results[i] = vec2<u32>();
    return;
  }
  slots[slot].length = extend[last[i]].cell + 1u;
  slots[slot].pending = chosen[i];
  extend[last[i]].token = chosen[i];
  results[i] = vec2<u32>(1u, chosen[i]);
}
