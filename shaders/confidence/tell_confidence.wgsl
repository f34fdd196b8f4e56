// How many drafts of the sequence were verified and the draft's confidence in each that it drafted, in the
// results of accept_commit.wgsl.

fn result_words() -> u32 {
  return 3u * ROWS;
}

fn tell(result: u32, slot: u32) {
  let verified = result + 2u * ROWS;
  results[verified] = min(ROWS - 1u, drafts[draft_count(slot)]);
  for (var j = 0u; j + 1u < ROWS; j++) {
    results[verified + 1u + j] = drafts[draft_confidence(slot, j)];
  }
}
