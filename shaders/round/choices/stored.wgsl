// The choices of accept_commit.wgsl where kernels before it have stored them.

const NOT_A_TOKEN = 0xffffffffu; // of choose.wgsl

@group(0) @binding(2) var<storage, read> chosen: array<u32>; // of each verify row

fn make_choices(first: u32, lane: u32) {}

fn choice(row: u32) -> u32 {
  return chosen[row];
}
