// What rows.wgsl reads, asked for before the weights.
//for s in LOADS
let i$s = thread + $su * THREADS;
let from$s = min(row + min(i$s / $STAGEu, $ROWSu - 1u), rows - 1u) * (COLS / 4u) +
  (tile.z * $STAGEu + i$s % $STAGEu) * 2u;
let lo$s = x[from$s];
let hi$s = x[from$s + 1u];
//end
