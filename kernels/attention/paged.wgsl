// What attention over keys and values in pages declares alike, where a workgroup takes $TILE rows of a slot and $GROUP
// query heads of one key-value head.

//#import lib/rows
//#import attention/visible
//#import lib/kv_load

override KV_HEADS: u32;
override HEAD_TILES: u32; // workgroups that share a key-value head
override TABLE_PAGES: u32; // pages per slot in the block table
override PER_SLOT: u32; // rows of one slot that follow each other
override FIRST_ROW: u32; // of `rows`
override SCALE: f32; // of scores

const GROUP = $GROUPu; // query heads of a workgroup
const TILE = $TILEu; // rows of a workgroup

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [rows, heads, 2 VEC8S]
@group(0) @binding(1) var<storage, read> keys: array<vec4<u32>>; // [pages, KV_HEADS, PAGE], rows of a dtype
@group(0) @binding(2) var<storage, read> values: array<vec4<u32>>; // as keys
@group(0) @binding(3) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]
@group(0) @binding(4) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]

// The row of keys and of values where a cell is stored.
fn stored(slot: u32, kv_head: u32, cell: u32) -> u32 {
  let page = pages[slot * TABLE_PAGES + cell / PAGE];
  return (page * KV_HEADS + kv_head) * PAGE + cell % PAGE;
}
