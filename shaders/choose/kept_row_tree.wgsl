// Rows of logprobs.wgsl in rounds of trees: those that accept_tree.wgsl kept.

override KEPT: u32; // where they begin in `last`

@group(0) @binding(3) var<storage, read> last: array<u32>; // from KEPT on [batch, TOKENS]

fn kept_row(b: u32, j: u32) -> u32 {
  return last[KEPT + b * TOKENS + j];
}
