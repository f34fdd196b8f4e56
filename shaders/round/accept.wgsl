// Draft `step` of the slot is accepted when it is the target's own choice at the verify row before
// it. A rule of accept_chain.wgsl.

fn accepts(slot: u32, row: u32, step: u32) -> bool {
  return drafts[draft_token(slot, step)] == choice(row);
}
