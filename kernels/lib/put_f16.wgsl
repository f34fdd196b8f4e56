// Stores numbers that matrix units take: $put
//   half  as f16, [rows, COLS / 8]
//   pair  as two f16 numbers, hi and then lo, [rows, 2, COLS / 8]
//
// The importing file declares `out`, array<vec4<u32>>, and COLS.

//#import lib/hi_of

// a and b, vec8 i of a row.
fn put_f16(row: u32, i: u32, a: vec4<f32>, b: vec4<f32>) {
  //#if put == half
  out[row * (COLS / 8u) + i] = packed(a, b);
  //#else
  let at = row * (COLS / 4u) + i;
  out[at] = packed(hi_of(a), hi_of(b));
  out[at + COLS / 8u] = packed(a - hi_of(a), b - hi_of(b));
  //#endif
}
