// What a convolution reads of a row, and what its ring keeps: see kernels/recurrent/short_conv.wgsl.

override COLS: u32; // that are convolved
override X_COLS: u32; // of x

@group(0) @binding(0) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(1) var<storage, read> x: array<f32>; // [rows, X_COLS]

// The number under which the ring keeps what is read of a row: its position, or for a node of a tree its cell, which no
// other row of the forward has.
fn kept_number(row: Row) -> u32 {
  //#if TREE
  return row.cell;
  //#else
  return row.position;
  //#endif
}

fn convolved(row: u32, col: u32) -> f32 {
  let first = row * X_COLS;
  //#if GATED
  return x[first + col] * x[first + 2u * COLS + col];
  //#else
  return x[first + col];
  //#endif
}
