// The rows of a verify forward of chains: per sequence its pending token and then its drafts, as many
// as are to be verified. Padding beyond them, and where there is no slot, or one that has stopped
// or owns too few cells for ROWS rows.
//
// One invocation per row; row = b * ROWS + depth.

//use fragments/rows
//use fragments/drafts

override ROWS: u32; // a sequence

@group(0) @binding(0) var<storage, read> batch_slots: array<u32>; // [batch] slot of each sequence
@group(0) @binding(1) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(2) var<storage, read> drafts: array<u32>; // [slots], see drafts.wgsl
@group(0) @binding(3) var<storage, read_write> rows: array<Row>; // [batch * ROWS]

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) tile: vec3<u32>) {
  let slot = batch_slots[tile.x / ROWS];
  let depth = tile.x % ROWS;
  if (slot == NO_SLOT || slots[slot].length + ROWS > slots[slot].limit) {
    rows[tile.x] = Row();
    return;
  }
  var token = slots[slot].pending;
  if (depth > 0u) {
    if (depth > drafts[draft_count(slot)]) {
      rows[tile.x] = Row();
      return;
    }
    token = drafts[draft_token(slot, depth - 1u)];
  }
  rows[tile.x] = chain_row(token, slot, slots[slot].length + depth);
}
