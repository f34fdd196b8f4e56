// silu(gate) * up, silu(g) = g / (1 + exp(-g)).

fn gated(sum: vec2<f32>) -> f32 {
  return sum.x / (1.0 + exp(-sum.x)) * sum.y;
}
