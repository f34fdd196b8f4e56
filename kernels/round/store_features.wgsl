// store[cell of row r] = features[r]: the target's hidden rows of tokens that were decoded without
// a draft, kept by page so that the draft can catch up on them later.
//
// One invocation per element.

//#import lib/rows

override COLS: u32;
override TABLE_PAGES: u32; // pages per slot in the block table

@group(0) @binding(0) var<storage, read> features: array<f32>; // [rows, COLS]
@group(0) @binding(1) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(2) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(3) var<storage, read_write> store: array<f32>; // [pages, PAGE, COLS]

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let row = rows[id.y];
  if (id.x < COLS && row.live == 1u) {
    let page = pages[row.slot * TABLE_PAGES + row.cell / PAGE];
    store[(page * PAGE + row.cell % PAGE) * COLS + id.x] = features[id.y * COLS + id.x];
  }
}
