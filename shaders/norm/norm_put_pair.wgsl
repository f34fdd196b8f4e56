// Output of rms_norm for matrix units: each number times the row's scale, as two f16 numbers, so that no workgroup
// that multiplies by the row has to split it.

//use tensor/cut

// Eight f16 each, hi and then lo: [rows, 2, COLS / 8].
@group(0) @binding(2) var<storage, read_write> out: array<vec4<u32>>;

fn put_pair(row: u32, i: u32, a: vec4<f32>, b: vec4<f32>) {
  let at = row * (COLS / 4u) + i;
  out[at] = packed(cut(a), cut(b));
  out[at + COLS / 8u] = packed(a - cut(a), b - cut(b));
}
