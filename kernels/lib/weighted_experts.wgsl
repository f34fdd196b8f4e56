// The outputs of a row's experts, each times its share, in the order in which they were chosen. The kernel binds
// `outputs`, [rows, $EXPERTS, COLS / 4], and `shares`, [rows, $EXPERTS].

fn combined(row: u32, i: u32) -> Vec8 {
  let first = row * $EXPERTSu * (COLS / 4u) + 2u * i;
  var v = Vec8();
  //#for k in EXPERTS
  {
    let from_expert = first + $ku * (COLS / 4u);
    let share = vec4<f32>(shares[row * $EXPERTSu + $ku]);
    v.lo = fma(share, outputs[from_expert], v.lo);
    v.hi = fma(share, outputs[from_expert + 1u], v.hi);
  }
  //#endfor
  return v;
}
