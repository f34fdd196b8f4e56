// Weights of matmuls on matrix units: f16, their row's scale in them.

// [rows, COLS / 8]: eight f16
@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;

fn eight_halves(f16: vec4<u32>, scale: f32) -> vec4<u32> {
  return f16;
}
