// Statements of matmul_resident.wgsl: x as it is.
//#for s in LOADS
let i$s = thread + $su * THREADS;
let from$s = min(row + min(i$s / $STAGEu, $ROWSu - 1u), rows - 1u) * (COLS / 4u) +
  (tile.z * $STAGEu + i$s % $STAGEu) * 2u;
let lo$s = x[from$s];
let hi$s = x[from$s + 1u];
//#endfor
//#for s in LOADS
if (i$s < $ROWSu * $STAGEu) {
  put_vec8(i$s / $STAGEu, i$s % $STAGEu, lo$s, hi$s);
}
//#endfor
