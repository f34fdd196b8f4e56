// Input of rms_norm: row r of x.

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>; // [rows, COLS / 4]

struct Eight {
  lo: vec4<f32>,
  hi: vec4<f32>,
}

fn source(row: u32) -> u32 {
  return row;
}

fn load(row: u32, i: u32) -> Eight {
  let at = row * (COLS / 4u) + 2u * i;
  return Eight(x[at], x[at + 1u]);
}
