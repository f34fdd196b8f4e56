// x of matmuls on matrix units as split_rows.wgsl wrote it: eight f16 of hi, then their lo.

alias X = vec4<u32>;

// [rows, COLS / 8, 2]
@group(0) @binding(1) var<storage, read> x: array<X>;

fn hi_of(hi: X, lo: X, scale: f32) -> vec4<u32> {
  return hi;
}

fn lo_of(hi: X, lo: X, scale: f32) -> vec4<u32> {
  return lo;
}
