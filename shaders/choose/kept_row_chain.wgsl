// Rows of logprobs.wgsl in rounds of chains and in prompts.

override ROWS: u32; // a sequence

fn kept_row(b: u32, j: u32) -> u32 {
  return b * ROWS + j;
}
