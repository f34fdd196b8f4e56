// Heads of attention_row.wgsl that are not normed: the first halves of all heads come before the second ones, as
// the loader's `heads` has them.

fn raw_pair(row: u32, all: u32, head: u32, w: u32) -> vec2<f32> {
  let at = (2u * row * all + head) * HALF + w;
  return vec2<f32>(qkv[at], qkv[at + all * HALF]);
}

fn gains(is_query: bool, w: u32) -> vec2<f32> {
  return vec2<f32>(1.0);
}

fn head_scale(squares: f32) -> f32 {
  return 1.0;
}
