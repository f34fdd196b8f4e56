// How matmul_resident.wgsl brings x to workgroup memory: normed, v / sqrt(mean(v^2) + EPS) * norm_weight with
// v = x + the sums of a split-K matmul, which the first workgroup of a row also stores.
//use matmul/hold/normed_squares
//for r in ROWS
{
  var sum = 0.0;
  //for e in REST
  sum += squares[$(r * NORM_LANES + e)u];
  //end
  let scale = 1.0 / sqrt(sum / f32(COLS) + EPS);
  //for u in NORM_TURNS
  //for j in NORM_EACH
  if (mine$u_$j) {
    put_vec8($ru, i$u_$j, v_lo$u_$j_$r * scale * gain_lo$u_$j, v_hi$u_$j_$r * scale * gain_hi$u_$j);
  }
  //end
  //end
}
//end
