// Which logical cells a row sees: the WINDOW ones that end with its own, or all up to there.

override WINDOW: u32; // cells, the row's own the last; 0xffffffff = no window

fn visible_begin(row: Row) -> u32 {
  return row.position + 1u - min(WINDOW, row.position + 1u);
}

// One past the last cell that the row sees; 0 for padding.
fn visible_end(row: Row) -> u32 {
  return (row.position + 1u) * row.live;
}
