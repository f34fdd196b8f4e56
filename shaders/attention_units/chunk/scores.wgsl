// S of chunk_units.wgsl, STAGE cells at a time; the next cells, or the first values, are asked for meanwhile.

//for c in CELL_TILES
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
//for c in STAGE_TILES
{
  let at = $cu * $UNIT_Nu * PITCH + $ku * UNIT_K8;
  let kh = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(&pool, at, PITCH);
  //for l in Q_LOW
  s$(t * STAGE_TILES + c) = subgroupMatrixMultiplyAccumulate(ql$k, kh, s$(t * STAGE_TILES + c));
  //end
  //for l in KV_LOW
  let kl = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(&pool, at + LOW_AT, PITCH);
  s$(t * STAGE_TILES + c) = subgroupMatrixMultiplyAccumulate(qh$k, kl, s$(t * STAGE_TILES + c));
  //end
  s$(t * STAGE_TILES + c) = subgroupMatrixMultiplyAccumulate(qh$k, kh, s$(t * STAGE_TILES + c));
}
//end
//end
workgroupBarrier();
//end
//for c in CELL_TILES
subgroupMatrixStore<row_major>(&pool, own_query * SCORE_PITCH + $cu * UNIT_N4, s$c, SCORE_PITCH);
//end
workgroupBarrier();
