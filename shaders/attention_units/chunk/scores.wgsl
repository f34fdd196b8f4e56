// S of chunk_units.wgsl, K_PART eights of the head at a time; the next ones are asked for meanwhile.

//for c in OWN_CELLS
var s$c = subgroup_matrix_result<f32, $UNIT_N, $UNIT_M>();
//end
//for t in K_PARTS
//for u in LOADS
pool[k_to + $uu * (K_CELLS * K_PITCH)] = kx$u;
//end
workgroupBarrier();
if ($tu + 1u < $K_PARTSu) {
  //for u in LOADS
  kx$u = k_halves[keys_at + $(t + 1)u * K_PART + $uu * (K_CELLS * ROW)];
  //end
}
//for k in PART_STEPS
//for c in OWN_CELLS
{
  let at = ($cu * $COLUMNSu + own_column) * $UNIT_Nu * K_PITCH + $ku * UNIT_K8;
  let kh = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(&pool, at, K_PITCH);
  //for l in Q_LOW
  s$c = subgroupMatrixMultiplyAccumulate(ql$(t * PART_STEPS + k), kh, s$c);
  //end
  //for l in KV_LOW
  let kl = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, col_major>(&pool, at + K_LOW_AT, K_PITCH);
  s$c = subgroupMatrixMultiplyAccumulate(qh$(t * PART_STEPS + k), kl, s$c);
  //end
  s$c = subgroupMatrixMultiplyAccumulate(qh$(t * PART_STEPS + k), kh, s$c);
}
//end
//end
workgroupBarrier();
//end
//for c in OWN_CELLS
{
  let column = ($cu * $COLUMNSu + own_column) * $UNIT_Nu;
  let at = own_query * SCORE_PITCH + column / SHARED * SHARE_PITCH + column % SHARED / 4u;
  subgroupMatrixStore<row_major>(&pool, at, s$c, SCORE_PITCH);
}
//end
workgroupBarrier();
