// Which logical cells a row sees: the WINDOW cells that end with its own, or all up to its own. And where
// they are stored: cells of other nodes of a tree may lie between them. Attention adds by logical cell alone, so that a
// row has the same bits wherever its cells are stored.

//#import lib/rows
//#import lib/path

override WINDOW: u32; // cells, the row's own the last; 0xffffffff = no window

fn visible_begin(row: Row) -> u32 {
  return row.position + 1u - min(WINDOW, row.position + 1u);
}

// One past the last cell that the row sees; 0 for padding.
fn visible_end(row: Row) -> u32 {
  return (row.position + 1u) * row.live;
}

// Whether some of the cells below `to` that the row may see are on its path; never for a chain.
fn scattered(row: Row, to: u32) -> bool {
  return row.base < min(to, visible_end(row));
}
