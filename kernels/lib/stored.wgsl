// The row of keys and of values where a cell is stored. The importing file binds `pages` and has TABLE_PAGES, KV_HEADS
// and PAGE (lib/rows.wgsl).
fn stored(slot: u32, kv_head: u32, cell: u32) -> u32 {
  let page = pages[slot * TABLE_PAGES + cell / PAGE];
  return (page * KV_HEADS + kv_head) * PAGE + cell % PAGE;
}
