// The rows of a verify forward of chains: rows[b * ROWS + d] is the pending token of sequence b for d = 0 and its draft
// d - 1 otherwise, or padding (lib/verify_row.wgsl).
//
// One invocation per row.

//#import lib/verify_row

@group(0) @binding(0) var<storage, read> batch_slots: array<u32>; // [batch] slot of each sequence
@group(0) @binding(1) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(2) var<storage, read> drafts: array<u32>; // [slots], see drafts.wgsl
@group(0) @binding(3) var<storage, read_write> rows: array<Row>; // [batch * ROWS]

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) tile: vec3<u32>) {
  rows[tile.x] = verify_row(tile.x);
}
