// Input of rms_norm: row r of x with the outputs of its experts added, each times its weight, one after the
// other; the result is stored in x, the residual stream.

//use fragments/vec8

@group(0) @binding(0) var<storage, read_write> x: array<vec4<f32>>; // [rows, COLS / 4]
@group(0) @binding(3) var<storage, read> outputs: array<vec4<f32>>; // [rows, $EXPERTS, COLS / 4]
@group(0) @binding(4) var<storage, read> shares: array<f32>; // [rows, $EXPERTS]

fn source(row: u32) -> u32 {
  return row;
}

fn load(row: u32, i: u32) -> Vec8 {
  let at = row * (COLS / 4u) + 2u * i;
  let first = row * $EXPERTSu * (COLS / 4u) + 2u * i;
  var sum = Vec8();
  //for k in EXPERTS
  {
    let from_expert = first + $ku * (COLS / 4u);
    let share = vec4<f32>(shares[row * $EXPERTSu + $ku]);
    sum.lo = fma(share, outputs[from_expert], sum.lo);
    sum.hi = fma(share, outputs[from_expert + 1u], sum.hi);
  }
  //end
  let v = Vec8(x[at] + sum.lo, x[at + 1u] + sum.hi);
  x[at] = v.lo;
  x[at + 1u] = v.hi;
  return v;
}
