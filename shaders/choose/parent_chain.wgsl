// Rows of relax.wgsl in rounds of chains.

fn parent_of(slot: u32, i: u32) -> u32 {
  return i;
}
