// Input of rms_norm: row r of x.

//use fragments/vec8

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>; // [rows, COLS / 4]

fn source(row: u32, lane: u32) -> u32 {
  return row;
}

fn load(row: u32, i: u32) -> Vec8 {
  let at = row * (COLS / 4u) + 2u * i;
  return Vec8(x[at], x[at + 1u]);
}
