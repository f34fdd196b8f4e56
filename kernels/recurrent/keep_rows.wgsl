// Stores what a convolution (short_conv.wgsl) read of the last RING rows of each slot in its ring, by their positions
// modulo RING: after it, which reads the rows that these take the places of.
//
// One invocation per (column, row).

//#import lib/slot_rows
//#import lib/conv_input

override RING: u32; // rows

@group(0) @binding(2) var<storage, read_write> ring: array<f32>; // [slots, RING, COLS]

@compute @workgroup_size(64)
fn main(
  @builtin(global_invocation_id) id: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
) {
  let col = id.x;
  let row = id.y;
  if (col >= COLS || rows[row].live == 0u || same_slot(row, row + RING, groups.y)) {
    return;
  }
  ring[(rows[row].slot * RING + rows[row].position % RING) * COLS + col] = convolved(row, col);
}
