// Statements of matmul_resident.wgsl that norm and gate the heads of x.
//#for s in LOADS
let i$s = thread + $su * THREADS;
let r$s = min(row + min(i$s / $STAGEu, $ROWSu - 1u), rows - 1u);
let vec8$s = tile.z * $STAGEu + i$s % $STAGEu;
let v_lo$s = x[r$s * (COLS / 4u) + 2u * vec8$s];
let v_hi$s = x[r$s * (COLS / 4u) + 2u * vec8$s + 1u];
let z_at$s = (r$s * GATE_COLS + GATE_FIRST) / 4u + 2u * vec8$s;
let gain_lo$s = norm_weight[vec8$s % HEAD_VEC8S * 2u] * silu(gate[z_at$s]);
let gain_hi$s = norm_weight[vec8$s % HEAD_VEC8S * 2u + 1u] * silu(gate[z_at$s + 1u]);
if (i$s < $ROWSu * $STAGEu) {
  squares[i$s] = square4(v_lo$s) + square4(v_hi$s);
}
//#endfor
workgroupBarrier();
//#for s in LOADS
if (i$s < $ROWSu * $STAGEu) {
  let first = i$s / HEAD_VEC8S * HEAD_VEC8S;
  var sum = 0.0;
  for (var i = 0u; i < HEAD_VEC8S; i++) {
    sum += squares[first + i];
  }
  let scale = inverseSqrt(sum / f32(8u * HEAD_VEC8S) + EPS);
  put_vec8(i$s / $STAGEu, i$s % $STAGEu, v_lo$s * scale * gain_lo$s, v_hi$s * scale * gain_hi$s);
}
//#endfor
