// q8 and q4 as f16: w = q * (scale * the row's scale), the scale of the group cut to f16 once, the product
// rounded once. Weights 0, 2 and 1, 3 of four go together: those are 16 bits apart in their words. x goes in
// the same order.

//use tensor/load/lanes
//use tensor/to_f16

// Integers in the mantissas of two f16 numbers: `bias` + q each.
fn less(mantissas: u32, bias: f16) -> vec2<f16> {
  return bitcast<vec2<f16>>(mantissas) - vec2<f16>(bias);
}

fn eight_of_x(a: vec4<f32>, b: vec4<f32>) -> vec4<u32> {
  return packed(a.xzyw, b.xzyw);
}
