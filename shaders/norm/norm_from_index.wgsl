// Input of rms_norm: row index[r] of x; rows with index 0xffffffff are not written.

//use fragments/vec8

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>; // [.., COLS / 4]
@group(0) @binding(3) var<storage, read> index: array<u32>; // [rows]

fn source(row: u32, lane: u32) -> u32 {
  return index[row];
}

fn load(row: u32, i: u32) -> Vec8 {
  let at = row * (COLS / 4u) + 2u * i;
  return Vec8(x[at], x[at + 1u]);
}
