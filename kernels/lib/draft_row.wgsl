// The row of draft token STEP of a slot, at position length + STEP. Its key and value go to a cell
// past the committed ones; draft-extend overwrites it with true features. Padding where the slot
// does not own the cell or has stopped. The file that uses this declares `slots` and STEP.

//#import lib/rows

fn draft_row(slot: u32, token: u32) -> Row {
  let cell = slots[slot].length + STEP;
  if (cell >= slots[slot].limit) {
    return Row();
  }
  return chain_row(token, slot, cell);
}
