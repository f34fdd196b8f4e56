// Weights of matmuls on matrix units: bf16 that become f16 times their row's scale, exactly.

// [rows, COLS / 8]: eight bf16
@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;

// Two bf16 as two f16.
fn halves(pair: u32, scale: f32) -> u32 {
  return pack2x16float(bitcast<vec2<f32>>(vec2(pair << 16u, pair & 0xffff0000u)) * scale);
}

fn eight_halves(bf16: vec4<u32>, scale: f32) -> vec4<u32> {
  return vec4(
    halves(bf16.x, scale),
    halves(bf16.y, scale),
    halves(bf16.z, scale),
    halves(bf16.w, scale),
  );
}
