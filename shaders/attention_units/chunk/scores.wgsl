// S of chunk_units.wgsl, STAGE cells at a time; the next cells, or the first values, are asked for meanwhile.

//for c in OWN_CELLS
var s$c = subgroup_matrix_result<f32, $UNIT_N, $UNIT_M>();
//end
//for t in STAGES
//for u in LOADS
{
  let e = thread + $uu * THREADS;
  let cell = e / ((1u + KV_LOW) * VEC8S);
  pool[e / VEC8S % (1u + KV_LOW) * LOW_AT + cell * PITCH + e % VEC8S] = kx$u;
}
//end
workgroupBarrier();
if ($tu + 1u < $STAGESu) {
  //for u in LOADS
  kx$u = k_halves[asked + $(t + 1)u * STAGE * (1u + KV_LOW) * VEC8S + $uu * THREADS];
  //end
}
//for k in K_STEPS
//for c in STAGE_OWN
{
  let at = ($cu * $COLUMNSu + own_column) * $UNIT_Nu * PITCH + $ku * UNIT_K8;
  let kh = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(&pool, at, PITCH);
  //for l in Q_LOW
  s$(t * STAGE_OWN + c) = subgroupMatrixMultiplyAccumulate(ql$k, kh, s$(t * STAGE_OWN + c));
  //end
  //for l in KV_LOW
  let kl = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(&pool, at + LOW_AT, PITCH);
  s$(t * STAGE_OWN + c) = subgroupMatrixMultiplyAccumulate(qh$k, kl, s$(t * STAGE_OWN + c));
  //end
  s$(t * STAGE_OWN + c) = subgroupMatrixMultiplyAccumulate(qh$k, kh, s$(t * STAGE_OWN + c));
}
//end
//end
workgroupBarrier();
//end
//for c in OWN_CELLS
subgroupMatrixStore<row_major>(
  &pool, own_query * SCORE_PITCH + score_at(($cu * $COLUMNSu + own_column) * $UNIT_Nu), s$c, SCORE_PITCH);
//end
workgroupBarrier();
