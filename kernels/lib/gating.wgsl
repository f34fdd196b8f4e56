// x f(gate), where x may be a quotient that was just computed. A driver may make one division of two,
// a / b / c = a / (b c), or divide after it multiplied, which rounds differently from a quotient that was stored; it
// cannot do so across a minimum.
//#if gating == sigmoid
fn gated_by(x: vec4<f32>, gate: vec4<f32>) -> vec4<f32> {
  return min(x, vec4<f32>(3.0e38)) / (1.0 + exp(-gate));
}
//#else if gating == softplus
//#import lib/softplus

fn gated_by(x: vec4<f32>, gate: vec4<f32>) -> vec4<f32> {
  let factor = vec4<f32>(softplus(gate.x), softplus(gate.y), softplus(gate.z), softplus(gate.w));
  return min(x, vec4<f32>(3.0e38)) * factor;
}
//#endif
