// f32 numbers as the f16 numbers hi and lo, hi + lo being the number but for its last bit. hi is rounded to 11 bits
// by its bits: a driver takes unpack2x16float(pack2x16float(x)) for x, and lo for 0.

fn high(x: vec4<f32>) -> vec4<f32> {
  return bitcast<vec4<f32>>((bitcast<vec4<u32>>(x) + vec4(0x1000u)) & vec4(0xffffe000u));
}

fn rounded_halves(a: vec4<f32>, b: vec4<f32>) -> vec4<u32> {
  return vec4(
    pack2x16float(a.xy),
    pack2x16float(a.zw),
    pack2x16float(b.xy),
    pack2x16float(b.zw),
  );
}

fn high_halves(a: vec4<f32>, b: vec4<f32>) -> vec4<u32> {
  return rounded_halves(high(a), high(b));
}

fn low_halves(a: vec4<f32>, b: vec4<f32>) -> vec4<u32> {
  return rounded_halves(a - high(a), b - high(b));
}

// 1 / scale, exactly.
fn inverse(scale: f32) -> f32 {
  return bitcast<f32>(0x7f000000u - bitcast<u32>(scale));
}
