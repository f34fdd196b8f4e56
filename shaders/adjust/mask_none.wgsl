// adjust.wgsl without a mask.

fn allowed(row: u32, token: u32) -> bool {
  return true;
}
