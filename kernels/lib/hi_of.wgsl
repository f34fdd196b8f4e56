// x as two f16 numbers, hi = hi_of(x) and lo = x - hi_of(x), eight of either in a vector.

// x truncated to the 11 significant bits that f16 has.
fn hi_of(x: vec4<f32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(bitcast<vec4<u32>>(x) & vec4(0xffffe000u));
}

fn packed(a: vec4<f32>, b: vec4<f32>) -> vec4<u32> {
  return vec4(
    pack2x16float(a.xy),
    pack2x16float(a.zw),
    pack2x16float(b.xy),
    pack2x16float(b.zw),
  );
}
