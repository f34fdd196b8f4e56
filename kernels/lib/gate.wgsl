//#if gate == gate_gelu
// gelu(gate) * up with GELU's approximation by tanh, gelu(g) = g / 2 (1 + tanh(sqrt(2 / pi) (g + 0.044715 g^3))).
// tanh is 1 from 9 on; past 44 exp overflows in some drivers.

fn gated(sum: vec2<f32>) -> f32 {
  let g = sum.x;
  let inner = 0.7978845608028654 * (g + 0.044715 * g * g * g);
  return 0.5 * g * (1.0 + tanh(clamp(inner, -15.0, 15.0))) * sum.y;
}
//#else
// silu(gate) * up, silu(g) = g / (1 + exp(-g)).

fn gated(sum: vec2<f32>) -> f32 {
  return sum.x / (1.0 + exp(-sum.x)) * sum.y;
}
//#endif
