// Second output of rms_norm: kept[r, KEPT_FIRST + c] = v[c].

override KEPT_COLS: u32; // row stride of kept, a multiple of 4
override KEPT_FIRST: u32; // first column written, a multiple of 4

@group(0) @binding($KEPT) var<storage, read_write> kept: array<vec4<f32>>; // [rows, KEPT_COLS / 4]

fn keep(row: u32, i: u32, v: Vec8, y: Vec8) {
  let at = (row * KEPT_COLS + KEPT_FIRST) / 4u + 2u * i;
  kept[at] = v.lo;
  kept[at + 1u] = v.hi;
}
