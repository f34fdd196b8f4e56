// Where the rows of an expert's matrix lie in its shard. The ROUTED experts, which a router chooses from, have
// MATRIX_ROWS rows each, one expert after the other; pairs are half of them apart, or with ROUTED_STEP 2 neighbours.
// The SHARED experts, which every row of x has, are parts of one MLP, cut along its intermediate outputs: their rows
// follow in the order of that MLP, [gate; up], or of down, in which each shared expert has its columns as a row of its
// own.

override ROUTED: u32;
override ROUTED_STEP: u32; // rows from an output to the next
override SHARED: u32;
override SHARED_NEXT: u32; // rows from a shared expert to the next
override SHARED_STEP: u32; // rows from an output of theirs to the next

struct ExpertRows {
  first: u32, // of output 0
  step: u32, // from an output to the next
  pair: u32, // from an output to the other of its pair
}

fn rows_of(expert: u32) -> ExpertRows {
  let half = MATRIX_ROWS / 2u;
  if (expert < ROUTED) {
    return ExpertRows(expert * MATRIX_ROWS, ROUTED_STEP, select(half, 1u, ROUTED_STEP == 2u));
  }
  let shared_first = ROUTED * MATRIX_ROWS + (expert - ROUTED) * SHARED_NEXT;
  return ExpertRows(shared_first, SHARED_STEP, half * SHARED);
}
