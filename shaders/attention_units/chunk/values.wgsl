// The weighted values of a split in chunk_units.wgsl, STAGE cells at a time.

//for k in C_STEPS
let weights$k = own_query * SCORE_PITCH + score_at($ku * $UNIT_Ku / SHARED * SHARED) + $ku * $UNIT_Ku % SHARED / 8u;
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
  let cell = e / ((1u + KV_LOW) * VEC8S);
  pool[e / VEC8S % (1u + KV_LOW) * LOW_AT + cell * PITCH + e % VEC8S] = vx$u;
}
//end
workgroupBarrier();
if ($tu + 1u < $STAGESu) {
  //for u in LOADS
  vx$u = v_halves[asked + $(t + 1)u * STAGE * (1u + KV_LOW) * VEC8S + $uu * THREADS];
  //end
}
//for g in ALONE
//for k in STAGE_STEPS
//for d in OWN_DIMS
{
  let at = $ku * $UNIT_Ku * PITCH + ($du * $COLUMNSu + own_column) * UNIT_N8;
  let vh = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, row_major>(&pool, at, PITCH);
  //for l in Q_LOW
  o$d = subgroupMatrixMultiplyAccumulate(pl$(t * STAGE_STEPS + k), vh, o$d);
  //end
  //for l in KV_LOW
  let vl = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, row_major>(&pool, at + LOW_AT, PITCH);
  o$d = subgroupMatrixMultiplyAccumulate(ph$(t * STAGE_STEPS + k), vl, o$d);
  //end
  o$d = subgroupMatrixMultiplyAccumulate(ph$(t * STAGE_STEPS + k), vh, o$d);
}
//end
//end
//end
//for g in GROUPED
//for k in STAGE_STEPS
//for h in DIM_FOURS
{
  //for d in FOUR
  let at$d = $ku * $UNIT_Ku * PITCH + ($(4 * h + d)u * $COLUMNSu + own_column) * UNIT_N8;
  let vh$d = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, row_major>(&pool, at$d, PITCH);
  //end
  //for l in KV_LOW
  //for d in FOUR
  let vl$d = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, row_major>(&pool, at$d + LOW_AT, PITCH);
  //end
  //end
  //for l in Q_LOW
  //for d in FOUR
  o$(4 * h + d) = subgroupMatrixMultiplyAccumulate(pl$(t * STAGE_STEPS + k), vh$d, o$(4 * h + d));
  //end
  //end
  //for l in KV_LOW
  //for d in FOUR
  o$(4 * h + d) = subgroupMatrixMultiplyAccumulate(ph$(t * STAGE_STEPS + k), vl$d, o$(4 * h + d));
  //end
  //end
  //for d in FOUR
  o$(4 * h + d) = subgroupMatrixMultiplyAccumulate(ph$(t * STAGE_STEPS + k), vh$d, o$(4 * h + d));
  //end
}
//end
//end
//end
workgroupBarrier();
//end
