// Input of rms_norm: row r of x with the outputs of its experts added, each times its weight, one after the
// other; the result is stored in x, the residual stream. No sum of products is added to x at last: some drivers
// would take that apart.

//use fragments/vec8

@group(0) @binding(0) var<storage, read_write> x: array<vec4<f32>>; // [rows, COLS / 4]
@group(0) @binding(3) var<storage, read> outputs: array<vec4<f32>>; // [rows, $EXPERTS, COLS / 4]
@group(0) @binding(4) var<storage, read> shares: array<f32>; // [rows, $EXPERTS]

fn source(row: u32, lane: u32) -> u32 {
  return row;
}

fn load(row: u32, i: u32) -> Vec8 {
  let at = row * (COLS / 4u) + 2u * i;
  let first = row * $EXPERTSu * (COLS / 4u) + 2u * i;
  var v = Vec8(x[at], x[at + 1u]);
  //for k in EXPERTS
  {
    let from_expert = first + $ku * (COLS / 4u);
    let share = vec4<f32>(shares[row * $EXPERTSu + $ku]);
    v.lo = fma(share, outputs[from_expert], v.lo);
    v.hi = fma(share, outputs[from_expert + 1u], v.hi);
  }
  //end
  x[at] = v.lo;
  x[at + 1u] = v.hi;
  return v;
}
