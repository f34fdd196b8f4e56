// Draft `step` of the slot is accepted when it is the target's own choice at the verify row before
// it. The rule of accept_commit.wgsl.

fn accepts(slot: u32, row: u32, step: u32) -> bool {
  return drafts[slot * MAX_STEPS + step] == chosen[row];
}
