// The rows of one draft level: lane b feeds draft token STEP at position length + STEP. Its key
// and value go to a cell past the committed ones; draft-extend overwrites it with true features.
// Padding where the lane has no slot, or one that does not own the cell or has stopped.
//
// One invocation per lane of the batch.

override STEP: u32;

@group(0) @binding(0) var<storage, read> lanes: array<u32>; // [batch] slot of each lane
@group(0) @binding(1) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(2) var<storage, read> drafts: array<u32>; // [slots, MAX_STEPS]
@group(0) @binding(3) var<storage, read_write> rows: array<Row>; // [batch]

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) tile: vec3<u32>) {
  let slot = lanes[tile.x];
  if (slot == NO_SLOT || slots[slot].length + STEP >= slots[slot].limit) {
    rows[tile.x] = Row(0u, 0u, 0u, 0u, 0u, 0u, 0u, 0u);
    return;
  }
  let cell = slots[slot].length + STEP;
  rows[tile.x] = Row(drafts[slot * MAX_STEPS + STEP], cell, slot, cell, cell + 1u, 0u, 0u, 1u);
}
