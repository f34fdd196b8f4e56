// The gate of gpt-oss's experts of (gate, up), with their biases: g sigmoid(1.702 g) (u + 1) where
//   g = min(gate, LIMIT), u = clamp(up, -LIMIT, LIMIT)
// Source: GptOssExperts of transformers.

override LIMIT: f32;

fn clamped(both: vec2<f32>) -> f32 {
  // exp overflows for g far below -40, where |g sigmoid(1.702 g)| is below 2e-28.
  let g = clamp(both.x, -40.0, LIMIT);
  let u = clamp(both.y, -LIMIT, LIMIT);
  return g / (1.0 + exp(-1.702 * g)) * (u + 1.0);
}
