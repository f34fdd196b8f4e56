// Heads of attention_row.wgsl that are not normed: the first halves of all heads come before the second ones, as
// the loader's `heads` has them.

// Where pair w of a head begins; the other half of it is a step further.
fn raw_at(row: u32, all: u32, head: u32, w: u32) -> u32 {
  return (2u * row * all + head) * HALF + w;
}

fn raw_step(all: u32) -> u32 {
  return all * HALF;
}

fn gains(is_query: bool, w: u32) -> vec2<f32> {
  return vec2<f32>(1.0);
}

fn head_scale(squares: f32) -> f32 {
  return 1.0;
}
