// Where the logical cells of a row are stored: of a node of a tree those of its last ancestors are on its path.

//#import lib/rows

// Where a logical cell is stored that the row sees.
fn physical(row: Row, cell: u32) -> u32 {
  let i = cell - row.base;
  let offset = (row.path[(i >> 2u) & 3u] >> (8u * (i & 3u))) & 0xffu;
  return select(row.base + offset, cell, cell < row.base);
}
