// Where the rows of a sequence are in rounds in which each has ROWS verify rows and DEPTH + 1 rows of
// draft-extend: for accept_commit.wgsl.

fn first_row(b: u32) -> u32 {
  return b * ROWS;
}

fn first_extend(b: u32) -> u32 {
  return b * (DEPTH + 1u);
}

// Rows of draft-extend that the sequence has.
fn extend_rows(slot: u32) -> u32 {
  return DEPTH + 1u;
}
