// x of matmuls on matrix units as row_halves.wgsl wrote it: the eights of a unit's k of hi, then their lo.

alias X = vec4<u32>;

// [rows, COLS / $UNIT_K, (hi, lo), $UNIT_EIGHTS]
@group(0) @binding(1) var<storage, read> x: array<X>;

const SECOND = $UNIT_EIGHTSu;

fn first_of(chunk: u32) -> u32 {
  return chunk / SECOND * (2u * SECOND) + chunk % SECOND;
}

fn hi_of(hi: X, lo: X, scale: f32) -> vec4<u32> {
  return hi;
}

fn lo_of(hi: X, lo: X, scale: f32) -> vec4<u32> {
  return lo;
}
