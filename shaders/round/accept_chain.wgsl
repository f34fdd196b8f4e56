// How accept_commit.wgsl walks a chain: on while drafts are accepted. Slot:
//   accepts: `fn accepts(slot, row, step)`, the rule (accept.wgsl, accept_simulated.wgsl).

//use accepts

// Drafts of the sequence that are accepted; its rows begin at `first`.
fn walk(slot: u32, first: u32) -> u32 {
  let most = min(DEPTH, drafts[draft_count(slot)]);
  var accepted = 0u;
  while (accepted < most && accepts(slot, first + accepted, accepted)) {
    accepted++;
  }
  return accepted;
}

// The row of the sequence at level j of the walk.
fn row_at(j: u32) -> u32 {
  return j;
}

fn keep(at: u32, row: u32) {}
