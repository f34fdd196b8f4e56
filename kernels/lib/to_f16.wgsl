// How matmuls on matrix units make f16 numbers.
//
// Weights: bf16 times the scale of its row; where $HALVED is 1 they are that already (halve_weights.wgsl).

//#import lib/hi_of

// Two bf16 as two f16.
fn halves(pair: u32, scale: f32) -> u32 {
  return pack2x16float(bitcast<vec2<f32>>(vec2(pair << 16u, pair & 0xffff0000u)) * scale);
}

// Eight of them.
fn eight_halves(stored: vec4<u32>, scale: f32) -> vec4<u32> {
  //#if HALVED
  return stored;
  //#else
  return vec4(
    halves(stored.x, scale),
    halves(stored.y, scale),
    halves(stored.z, scale),
    halves(stored.w, scale),
  );
  //#endif
}

// 1 / scale, exactly.
fn inverse(scale: f32) -> f32 {
  return bitcast<f32>(0x7f000000u - bitcast<u32>(scale));
}
