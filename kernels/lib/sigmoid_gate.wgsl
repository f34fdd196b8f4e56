// x / (1 + exp(-gate)), where x is a quotient that was just computed. A driver may make one division of two,
// a / b / c = a / (b c), which rounds differently from a quotient that was stored; it cannot do so across a minimum.
fn sigmoid_gated(x: vec4<f32>, gate: vec4<f32>) -> vec4<f32> {
  return min(x, vec4<f32>(3.0e38)) / (1.0 + exp(-gate));
}
