// Rows of relax.wgsl in rounds of trees.

fn parent_of(slot: u32, i: u32) -> u32 {
  return drafts[draft_parent(slot, i)];
}
