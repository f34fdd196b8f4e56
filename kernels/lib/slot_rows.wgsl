// Rows of one slot in a forward: they follow each other, in the order of their positions, and have no padding between.
//
// The kernel binds `rows`.

//#import lib/rows

// Whether row `other` is of the same slot as row `row`, both below `count`.
fn same_slot(row: u32, other: u32, count: u32) -> bool {
  return other < count && rows[other].live != 0u && rows[other].slot == rows[row].slot;
}
