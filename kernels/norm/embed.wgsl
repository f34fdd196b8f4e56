// out[r, c] = SCALE E[rows[r].token, c] for tokens of this shard of the embedding matrix.
//
// One invocation per eight columns of a row.

//#import lib/weights_$weights
//#import lib/rows

override COLS: u32; // a multiple of 8
override OUT_COLS: u32; // row stride of out
override SHARD_FIRST: u32; // first token of the shard
override SHARD_ROWS: u32;
override SCALE: f32;

@group(0) @binding(1) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [rows, OUT_COLS]

@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let token = rows[id.y].token - SHARD_FIRST; // wraps below the shard
  if (id.x >= COLS / 8u || token >= SHARD_ROWS) {
    return;
  }
  let e = vec8_0(load_block(token * (COLS / 8u) + id.x));
  let at = id.y * OUT_COLS + id.x * 8u;
  for (var i = 0u; i < 4u; i++) {
    out[at + i] = e.lo[i] * SCALE;
    out[at + 4u + i] = e.hi[i] * SCALE;
  }
}
