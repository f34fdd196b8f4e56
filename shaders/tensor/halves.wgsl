// x of matmuls on matrix units: f32 times a power of two as two f16 numbers, hi + lo, 22 bits.

// x with the 11 bits that f16 has. By its bits: a driver takes unpack2x16float(pack2x16float(x)) for x, and
// lo for 0.
fn cut(x: vec4<f32>) -> vec4<f32> {
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

// 1 / scale, exactly.
fn inverse(scale: f32) -> f32 {
  return bitcast<f32>(0x7f000000u - bitcast<u32>(scale));
}
