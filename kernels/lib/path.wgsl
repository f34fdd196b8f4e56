// Where the logical cells of a row are stored: for a node of a tree, the cells of its last ancestors are on its path.

//#import lib/rows

// The cell where a logical cell that the row sees is stored.
fn physical(row: Row, cell: u32) -> u32 {
  let i = cell - row.base;
  let offset = (row.path[(i >> 2u) & 3u] >> (8u * (i & 3u))) & 0xffu;
  return select(row.base + offset, cell, cell < row.base);
}
