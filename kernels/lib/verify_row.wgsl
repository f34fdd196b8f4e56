// A row of a verify forward of chains, row = b * ROWS + depth: the pending token of sequence b at depth 0, then those
// of its drafts that are to be verified. Rows beyond them are padding, and so are all rows of a sequence without a
// slot, or whose slot has stopped or owns too few cells for ROWS rows.
//
// The kernel binds `batch_slots`, `slots` and `drafts`.

//#import lib/rows
//#import lib/drafts

override ROWS: u32; // a sequence

fn verify_row(row: u32) -> Row {
  let slot = batch_slots[row / ROWS];
  let depth = row % ROWS;
  if (slot == NO_SLOT || slots[slot].length + ROWS > slots[slot].limit) {
    return Row();
  }
  var token = slots[slot].pending;
  if (depth > 0u) {
    if (depth > drafts[draft_count(slot)]) {
      return Row();
    }
    token = drafts[draft_token(slot, depth - 1u)];
  }
  return chain_row(token, slot, slots[slot].length + depth);
}
