// The weighted values of a split in chunk_units.wgsl, STAGE cells at a time.

//for k in C_STEPS
let weights$k = own_query * SCORE_PITCH + $ku * $UNIT_Ku / SHARED * (SHARED / 4u) + $ku * $UNIT_Ku % SHARED / 8u;
let ph$k = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(&pool, weights$k, SCORE_PITCH);
//for l in Q_LOW
let pl$k = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(
  &pool, weights$k + SHARED / 8u, SCORE_PITCH);
//end
//end
workgroupBarrier();
//for d in OWN_DIMS
var o$d = subgroup_matrix_result<f32, $UNIT_N, $UNIT_M>();
//end
//for t in STAGES
//for u in LOADS
{
  let e = thread + $uu * THREADS;
  pool[e / (STAGE / 8u) * V_PITCH + e % (STAGE / 8u)] = vx$u;
}
//end
workgroupBarrier();
//for w in EARLY
if ($tu + 1u < $STAGESu) {
  //for u in LOADS
  vx$u = v_halves[asked + $(t + 1)u * STAGE * (1u + KV_LOW) * VEC8S + $uu * THREADS];
  //end
}
//end
//for k in STAGE_STEPS
//for d in OWN_DIMS
{
  let at = ($du * $COLUMNSu + own_column) * $UNIT_Nu * V_PITCH + $ku * UNIT_K8;
  let vh = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(&pool, at, V_PITCH);
  //for l in Q_LOW
  o$d = subgroupMatrixMultiplyAccumulate(pl$(t * STAGE_STEPS + k), vh, o$d);
  //end
  //for l in KV_LOW
  let vl = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(&pool, at + V_LOW_AT, V_PITCH);
  o$d = subgroupMatrixMultiplyAccumulate(ph$(t * STAGE_STEPS + k), vl, o$d);
  //end
  o$d = subgroupMatrixMultiplyAccumulate(ph$(t * STAGE_STEPS + k), vh, o$d);
}
//end
//end
//for w in LATE
if ($tu + 1u < $STAGESu) {
  //for u in LOADS
  vx$u = v_halves[asked + $(t + 1)u * STAGE * (1u + KV_LOW) * VEC8S + $uu * THREADS];
  //end
}
//end
workgroupBarrier();
//end
