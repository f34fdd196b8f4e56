// q, k and v without a bias.

fn biased(sum: vec2<f32>, at: u32) -> vec2<f32> {
  return sum;
}
