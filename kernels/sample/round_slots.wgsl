// The slots of a round with a seed of its own, for block verification (reject.wgsl), which reads the noise of positions
// that the next round reaches again:
//   round_slots[s] = slots[s], but seed = hash32(seed, position of the pending token, ROUND)
//
// One invocation per sequence of the batch.

//#import lib/rows
//#import lib/noise

const ROUND = 0xb10cc5u; // in the place of a token id, which stays below 2^22

@group(0) @binding(0) var<storage, read> rows: array<Row>; // [batch], of the pending tokens
@group(0) @binding(1) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(2) var<storage, read_write> round_slots: array<Slot>; // [slots]

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) tile: vec3<u32>) {
  let row = rows[tile.x];
  if (row.live == 0u) {
    return;
  }
  var slot = slots[row.slot];
  slot.seed = hash32(slot.seed, row.position, ROUND);
  round_slots[row.slot] = slot;
}
