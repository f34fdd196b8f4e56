// Which cells a row may see: all below `base`, and from there on those whose bit is set; of all these
// the ones above position - WINDOW. Cells from `base` on lie within any window: they are fewer.

override WINDOW: u32; // cells, the row's own the last; 0xffffffff = no window

// The first cell within the window.
fn visible_begin(row: Row) -> u32 {
  return row.position + 1u - min(WINDOW, row.position + 1u);
}

fn visible(row: Row, cell: u32) -> bool {
  return cell >= visible_begin(row) && masked_in(row, cell);
}

fn masked_in(row: Row, cell: u32) -> bool {
  let bit = cell - row.base;
  let word = select(row.mask_hi, row.mask_lo, bit < 32u);
  return cell < row.base || (bit < 64u && ((word >> (bit % 32u)) & 1u) == 1u);
}

// One past the last cell that the row may see; 0 for padding.
fn visible_end(row: Row) -> u32 {
  let lo = 32u - countLeadingZeros(row.mask_lo);
  let hi = 64u - countLeadingZeros(row.mask_hi);
  return (row.base + select(lo, hi, row.mask_hi != 0u)) * row.live;
}
