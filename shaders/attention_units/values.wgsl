// The weighted values of a split in attention_units.wgsl, by tiles, those of lo first; then through the pool to
// the sums of the splits so far.

//for d in OWN_DIMS
var o$d = subgroup_matrix_result<f32, $UNIT_N, $UNIT_M>();
//end
//for k in C_STEPS
{
  let weights = SCORES_AT + own_query * SCORE_PITCH + $ku * UNIT_K8;
  let ph = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(&pool, weights, SCORE_PITCH);
  //for l in Q_LOW
  let pl = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(
    &pool, weights + SPLIT_CELLS / 8u, SCORE_PITCH);
  //end
  //for d in OWN_DIMS
  if (own_column * $OWN_DIMSu + $du < $DIM_TILESu) {
    let at = $ku * $UNIT_Ku * PITCH + (own_column * $OWN_DIMSu + $du) * UNIT_N8;
    let vh = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, row_major>(&pool, at, PITCH);
    //for l in Q_LOW
    o$d = subgroupMatrixMultiplyAccumulate(pl, vh, o$d);
    //end
    //for l in KV_LOW
    let vl = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, row_major>(&pool, at + KV_LOW_AT, PITCH);
    o$d = subgroupMatrixMultiplyAccumulate(ph, vl, o$d);
    //end
    o$d = subgroupMatrixMultiplyAccumulate(ph, vh, o$d);
  }
  //end
}
//end
workgroupBarrier();
//for d in OWN_DIMS
if (own_column * $OWN_DIMSu + $du < $DIM_TILESu) {
  subgroupMatrixStore<row_major>(
    &pool, own_query * SUM_PITCH + (own_column * $OWN_DIMSu + $du) * UNIT_N4, o$d, SUM_PITCH);
}
//end
workgroupBarrier();
//for u in SUMS
{
  let e = min(thread + $uu * THREADS, QUERIES * 2u * VEC8S - 1u);
  let part = bitcast<vec4<f32>>(pool[e / (2u * VEC8S) * SUM_PITCH + e % (2u * VEC8S)]);
  let weight = shares[e / (2u * VEC8S)];
  let merged = fma(sum$u, vec4(weight.x), part * weight.y);
  sum$u = select(sum$u, merged, weight.z == 1.0);
}
//end
