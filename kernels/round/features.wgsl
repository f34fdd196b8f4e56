// Hidden rows of the target kept by KV page, of tokens that were decoded without a draft, so that the draft can catch
// up on them later:
//   store[cell of row r] = features[r], or with LOADS
//   features[r] = store[cell of row r]
//
// One invocation per element.

//#import lib/rows

override COLS: u32;
override TABLE_PAGES: u32; // pages per slot in the block table

//#if LOADS
@group(0) @binding(0) var<storage, read> store: array<f32>; // [pages, PAGE, COLS]
@group(0) @binding(1) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(2) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(3) var<storage, read_write> features: array<f32>; // [rows, COLS]
//#else
@group(0) @binding(0) var<storage, read> features: array<f32>; // [rows, COLS]
@group(0) @binding(1) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(2) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(3) var<storage, read_write> store: array<f32>; // [pages, PAGE, COLS]
//#endif

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let row = rows[id.y];
  if (id.x < COLS && row.live == 1u) {
    let page = pages[row.slot * TABLE_PAGES + row.cell / PAGE];
    //#if LOADS
    features[id.y * COLS + id.x] = store[(page * PAGE + row.cell % PAGE) * COLS + id.x];
    //#else
    store[(page * PAGE + row.cell % PAGE) * COLS + id.x] = features[id.y * COLS + id.x];
    //#endif
  }
}
