// Nothing is noted of rms_norm's rows.

fn seen(peak: f32, y: Vec8) -> f32 {
  return peak;
}

fn note(row: u32, lane: u32, peak: f32) -> f32 {
  return 1.0;
}
