// A row of a verify forward of chains: per sequence its pending token and then its drafts, as many
// as are to be verified. Padding beyond them, and where there is no slot, or one that has stopped
// or owns too few cells for ROWS rows.
//
// The file that uses this declares `batch_slots`, `slots` and `drafts`. Row = b * ROWS + depth.

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
