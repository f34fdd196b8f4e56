// S of attention_units.wgsl, by tiles: those of lo first.

//for c in OWN_CELLS
var s$c = subgroup_matrix_result<f32, $UNIT_N, $UNIT_M>();
//end
//for k in K_STEPS
//for f in FETCHED
let qh$k = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(
  &pool, Q_AT + own_query * PITCH + $ku * UNIT_K8, PITCH);
//for l in Q_LOW
let ql$k = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(
  &pool, Q_AT + Q_LOW_AT + own_query * PITCH + $ku * UNIT_K8, PITCH);
//end
//end
//for c in OWN_CELLS
if (own_column * $OWN_CELLSu + $cu < $CELL_TILESu) {
  let at = (own_column * $OWN_CELLSu + $cu) * $UNIT_Nu * PITCH + $ku * UNIT_K8;
  let kh = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(&pool, at, PITCH);
  //for l in Q_LOW
  s$c = subgroupMatrixMultiplyAccumulate(ql$k, kh, s$c);
  //end
  //for l in KV_LOW
  let kl = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(&pool, at + KV_LOW_AT, PITCH);
  s$c = subgroupMatrixMultiplyAccumulate(qh$k, kl, s$c);
  //end
  s$c = subgroupMatrixMultiplyAccumulate(qh$k, kh, s$c);
}
//end
//end
//for c in OWN_CELLS
if (own_column * $OWN_CELLSu + $cu < $CELL_TILESu) {
  subgroupMatrixStore<row_major>(
    &pool, SCORES_AT + own_query * SCORE_PITCH + (own_column * $OWN_CELLSu + $cu) * UNIT_N4, s$c, SCORE_PITCH);
}
//end
