// Statements of matmuls that norm x themselves, on its way to workgroup memory: v / sqrt(mean(v^2) + EPS) *
// norm_weight. v is x + the sums of a split-K matmul ($BRANCH: normed themselves), or + the weighted outputs of the
// experts. The first workgroup of a row also stores v; where a draft reads v too ($KEPT), a second time. Every sum has
// the order of norm/rms_norm.wgsl with $NORM_LANES lanes: vec8 i belongs to lane i % $NORM_LANES, an invocation has the
// lanes thread, thread + THREADS, ...
//#for u in NORM_TURNS
//#for j in NORM_EACH
let i$u_$j = thread + $(u * THREADS + j * NORM_LANES)u;
let mine$u_$j = thread + $(u * THREADS)u < $NORM_LANESu && i$u_$j < COLS / 8u;
let vec$u_$j = select(0u, i$u_$j, mine$u_$j);
let gain_lo$u_$j = norm_weight[2u * vec$u_$j];
let gain_hi$u_$j = norm_weight[2u * vec$u_$j + 1u];
//#if BRANCH
let branch_lo$u_$j = branch_weight[2u * vec$u_$j];
let branch_hi$u_$j = branch_weight[2u * vec$u_$j + 1u];
//#endif
//#for r in ROWS
let v_at$u_$j_$r = min(row + $ru, rows - 1u) * (COLS / 4u) + 2u * vec$u_$j;
var v_lo$u_$j_$r = x[v_at$u_$j_$r];
var v_hi$u_$j_$r = x[v_at$u_$j_$r + 1u];
//#endfor
//#endfor
//#endfor
//#if HANDOFF
//#import lib/handoff_statements
//#endif
//#for u in NORM_TURNS
//#for j in NORM_EACH
//#for r in ROWS
//#if ADDED
var s_lo$u_$j_$r = sums[v_at$u_$j_$r];
var s_hi$u_$j_$r = sums[v_at$u_$j_$r + 1u];
//#for q in MORE_ADDENDS
s_lo$u_$j_$r += sums[($qu + 1u) * rows * (COLS / 4u) + v_at$u_$j_$r];
s_hi$u_$j_$r += sums[($qu + 1u) * rows * (COLS / 4u) + v_at$u_$j_$r + 1u];
//#endfor
//#if !BRANCH
v_lo$u_$j_$r += s_lo$u_$j_$r;
v_hi$u_$j_$r += s_hi$u_$j_$r;
//#endif
//#endif
//#if WEIGHED
//#for k in EXPERTS
{
  let of_expert = min(row + $ru, rows - 1u) * $EXPERTSu + $ku;
  let share = vec4<f32>(shares[of_expert]);
  v_lo$u_$j_$r = fma(share, outputs[of_expert * (COLS / 4u) + 2u * vec$u_$j], v_lo$u_$j_$r);
  v_hi$u_$j_$r = fma(share, outputs[of_expert * (COLS / 4u) + 2u * vec$u_$j + 1u], v_hi$u_$j_$r);
}
//#endfor
//#endif
//#endfor
//#endfor
//#endfor
//#if BRANCH
//#for r in ROWS
//#for u in NORM_TURNS
{
  var square = 0.0;
  //#for j in NORM_EACH
  if (mine$u_$j) {
    square = add_squares(add_squares(square, s_lo$u_$j_$r), s_hi$u_$j_$r);
  }
  //#endfor
  put_square($ru, thread + $(u * THREADS)u, square);
}
//#endfor
//#endfor
fold_squares(thread);
//#for r in ROWS
{
  let branch_scale = norm_scale($ru, BRANCH_EPS);
  //#for u in NORM_TURNS
  //#for j in NORM_EACH
  // One rounding, as in norm/rms_norm.wgsl.
  v_lo$u_$j_$r = fma(s_lo$u_$j_$r * branch_scale, branch_lo$u_$j, v_lo$u_$j_$r);
  v_hi$u_$j_$r = fma(s_hi$u_$j_$r * branch_scale, branch_hi$u_$j, v_hi$u_$j_$r);
  //#if SCALED
  v_lo$u_$j_$r *= scalar[0];
  v_hi$u_$j_$r *= scalar[0];
  //#endif
  //#endfor
  //#endfor
}
//#endfor
workgroupBarrier();
//#endif
//#for r in ROWS
//#for u in NORM_TURNS
{
  var square = 0.0;
  //#for j in NORM_EACH
  if (mine$u_$j) {
    square = add_squares(add_squares(square, v_lo$u_$j_$r), v_hi$u_$j_$r);
    //#if STREAMED
    if (tile.y == 0u && row + $ru < rows) {
      stream[v_at$u_$j_$r] = v_lo$u_$j_$r;
      stream[v_at$u_$j_$r + 1u] = v_hi$u_$j_$r;
    }
    //#endif
    //#if KEPT
    if (tile.y == 0u && row + $ru < rows) {
      let to = ((row + $ru) * KEPT_COLS + KEPT_FIRST) / 4u + 2u * vec$u_$j;
      kept[to] = v_lo$u_$j_$r;
      kept[to + 1u] = v_hi$u_$j_$r;
    }
    //#endif
  }
  //#endfor
  put_square($ru, thread + $(u * THREADS)u, square);
}
//#endfor
//#endfor
fold_squares(thread);
//#for r in ROWS
{
  let scale = norm_scale($ru, EPS);
  //#for u in NORM_TURNS
  //#for j in NORM_EACH
  if (mine$u_$j) {
    put_vec8($ru, i$u_$j, v_lo$u_$j_$r * scale * gain_lo$u_$j, v_hi$u_$j_$r * scale * gain_hi$u_$j);
  }
  //#endfor
  //#endfor
}
//#endfor
