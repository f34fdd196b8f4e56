// features[r] = store[cell of row r]: the hidden rows that store_features kept.
//
// One invocation per element.

//#import lib/rows

override COLS: u32;
override TABLE_PAGES: u32; // pages per slot in the block table

@group(0) @binding(0) var<storage, read> store: array<f32>; // [pages, PAGE, COLS]
@group(0) @binding(1) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(2) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(3) var<storage, read_write> features: array<f32>; // [rows, COLS]

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let row = rows[id.y];
  if (id.x < COLS && row.live == 1u) {
    let page = pages[row.slot * TABLE_PAGES + row.cell / PAGE];
    features[id.y * COLS + id.x] = store[(page * PAGE + row.cell % PAGE) * COLS + id.x];
  }
}
