// The rows of a round's first draft level: sequence b feeds draft token STEP, see lib/draft_row.wgsl;
// padding where there is no slot. draft_choose stores the rows of the further levels.
//
// One invocation per sequence of the batch.

//#import lib/drafts
//#import lib/draft_row

override STEP: u32;

@group(0) @binding(0) var<storage, read> batch_slots: array<u32>; // [batch] slot of each sequence
@group(0) @binding(1) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(2) var<storage, read> drafts: array<u32>; // [slots], see drafts.wgsl
@group(0) @binding(3) var<storage, read_write> rows: array<Row>; // [batch]

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) tile: vec3<u32>) {
  let slot = batch_slots[tile.x];
  if (slot == NO_SLOT) {
    rows[tile.x] = Row();
    return;
  }
  rows[tile.x] = draft_row(slot, drafts[draft_token(slot, STEP)]);
}
