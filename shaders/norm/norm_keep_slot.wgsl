// Second output of rms_norm: kept[slot[r], c] = v[c]; rows with slot 0xffffffff go nowhere.

@group(0) @binding($KEPT) var<storage, read_write> kept: array<vec4<f32>>; // [.., COLS / 4]
@group(0) @binding($SLOT) var<storage, read> slot: array<u32>; // [rows]

fn keep(row: u32, i: u32, v: Vec8, y: Vec8) {
  let to = slot[row];
  if (to != NO_ROW) {
    let at = to * (COLS / 4u) + 2u * i;
    kept[at] = v.lo;
    kept[at + 1u] = v.hi;
  }
}
