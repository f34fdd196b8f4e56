// Eight numbers, rounded to f16.
fn packed(a: vec4<f32>, b: vec4<f32>) -> vec4<u32> {
  return vec4(
    pack2x16float(a.xy),
    pack2x16float(a.zw),
    pack2x16float(b.xy),
    pack2x16float(b.zw),
  );
}
