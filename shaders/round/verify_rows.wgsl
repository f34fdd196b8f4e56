// The rows of a verify forward: per lane its root and then NUM_STEPS drafts, a chain.
// Padding where the lane has no slot, or one that has stopped or owns too few cells for the chain.
//
// One invocation per row; row = lane * (NUM_STEPS + 1) + depth.

override NUM_STEPS: u32;

@group(0) @binding(0) var<storage, read> lanes: array<u32>; // [batch] slot of each lane
@group(0) @binding(1) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(2) var<storage, read> drafts: array<u32>; // [slots, MAX_STEPS]
@group(0) @binding(3) var<storage, read_write> rows: array<Row>; // [batch * (NUM_STEPS + 1)]

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) tile: vec3<u32>) {
  let slot = lanes[tile.x / (NUM_STEPS + 1u)];
  let depth = tile.x % (NUM_STEPS + 1u);
  if (slot == NO_SLOT || slots[slot].length + NUM_STEPS >= slots[slot].limit) {
    rows[tile.x] = Row();
    return;
  }
  var token = slots[slot].root;
  if (depth > 0u) {
    token = drafts[slot * MAX_STEPS + depth - 1u];
  }
  let cell = slots[slot].length + depth;
  rows[tile.x] = chain_row(token, slot, cell);
}
