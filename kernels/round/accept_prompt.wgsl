// Ends a prefill: the choice after the prompt's last row becomes the slot's pending token and the token of
// the last draft-extend row.
//
// One invocation in all. last[0] is the chunk's last row, batch_slots[0] the slot.

//#import lib/rows

@group(0) @binding(0) var<storage, read> batch_slots: array<u32>; // [1]
@group(0) @binding(1) var<storage, read> last: array<u32>; // [1]
@group(0) @binding(2) var<storage, read> chosen: array<u32>; // [1]
@group(0) @binding(3) var<storage, read_write> slots: array<Slot>; // [slots]
@group(0) @binding(4) var<storage, read_write> extend: array<Row>; // [rows]
@group(0) @binding(5) var<storage, read_write> results: array<u32>; // two words of it

@compute @workgroup_size(1)
fn main() {
  let slot = batch_slots[0];
  slots[slot].length = extend[last[0]].cell + 1u;
  slots[slot].pending = chosen[0];
  extend[last[0]].token = chosen[0];
  results[0] = 1u;
  results[1] = chosen[0];
}
