// Where the rows of a sequence are in packed rounds of chains (verify_packed.wgsl): for accept_commit.wgsl.
// Its rows of draft-extend are at the places of its verify rows, whose features are theirs.

override FIRST_ROWS: u32; // word of `last` from which the first row of each sequence is

fn first_row(b: u32) -> u32 {
  return last[FIRST_ROWS + b];
}

fn first_extend(b: u32) -> u32 {
  return first_row(b);
}

fn extend_rows(slot: u32) -> u32 {
  if (slot == NO_SLOT) {
    return 0u;
  }
  return 1u + min(ROWS - 1u, drafts[draft_count(slot)]);
}
