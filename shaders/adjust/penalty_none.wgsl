// adjust.wgsl without penalties.

fn begin_row(row: u32, lane: u32) {}

fn penalized(token: u32, logit: f32) -> f32 {
  return logit;
}
