// Stores in each slot's ring what a convolution (short_conv.wgsl) read of the slot's last RING rows, by position modulo
// RING, for nodes of trees by cell. It runs after the convolution, which reads the rows that are overwritten here.
//
// One invocation per (column, BLOCK rows), most of which are not among the last.

//#import lib/slot_rows
//#import lib/conv_input

override RING: u32; // rows

const BLOCK = $BLOCKu;

@group(0) @binding(2) var<storage, read_write> ring: array<f32>; // [slots, RING, COLS]

var<workgroup> kept: array<u32, BLOCK>; // 1: it is one of the last

@compute @workgroup_size(64)
fn main(
  @builtin(global_invocation_id) id: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let col = id.x;
  let first = id.y * BLOCK;
  let count = arrayLength(&x) / X_COLS;
  if (thread < BLOCK) {
    let row = first + thread;
    kept[thread] = u32(row < count && rows[row].live != 0u && !same_slot(row, row + RING, count));
  }
  workgroupBarrier();
  for (var i = 0u; i < BLOCK; i++) {
    if (kept[i] == 1u && col < COLS) {
      let own = rows[first + i];
      ring[(own.slot * RING + kept_number(own) % RING) * COLS + col] = convolved(first + i, col);
    }
  }
}
