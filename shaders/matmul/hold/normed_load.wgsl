// What normed.wgsl reads, asked for before the weights: all of x is needed before the first of them.
//for u in NORM_TURNS
//for j in NORM_EACH
let i$u_$j = thread + $(u * THREADS + j * NORM_LANES)u;
let mine$u_$j = thread + $(u * THREADS)u < $NORM_LANESu && i$u_$j < COLS / 8u;
let vec$u_$j = select(0u, i$u_$j, mine$u_$j);
let gain_lo$u_$j = norm_weight[2u * vec$u_$j];
let gain_hi$u_$j = norm_weight[2u * vec$u_$j + 1u];
//for r in ROWS
let v_at$u_$j_$r = min(row + $ru, rows - 1u) * (COLS / 4u) + 2u * vec$u_$j;
var v_lo$u_$j_$r = x[v_at$u_$j_$r];
var v_hi$u_$j_$r = x[v_at$u_$j_$r + 1u];
//for q in ADDENDS
let s_lo$u_$j_$r_$q = sums[$qu * rows * (COLS / 4u) + v_at$u_$j_$r];
let s_hi$u_$j_$r_$q = sums[$qu * rows * (COLS / 4u) + v_at$u_$j_$r + 1u];
//end
//for k in EXPERTS
let share$u_$j_$r_$k = shares[min(row + $ru, rows - 1u) * $EXPERTSu + $ku];
let of_lo$u_$j_$r_$k =
  outputs[(min(row + $ru, rows - 1u) * $EXPERTSu + $ku) * (COLS / 4u) + 2u * vec$u_$j];
let of_hi$u_$j_$r_$k =
  outputs[(min(row + $ru, rows - 1u) * $EXPERTSu + $ku) * (COLS / 4u) + 2u * vec$u_$j + 1u];
//end
//end
//end
//end
