// The weighted values of a split in chunk_units.wgsl, PART fours of a head at a time, whose sums go through the pool to
// those of the splits before. The next part is asked for meanwhile, behind the last one the next split's keys.

//for k in C_STEPS
let weights$k = own_query * SCORE_PITCH + $ku * $UNIT_Ku / SHARED * SHARE_PITCH + $ku * $UNIT_Ku % SHARED / 8u;
let ph$k = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(&pool, weights$k, SCORE_PITCH);
//for l in Q_LOW
let pl$k = subgroupMatrixLoad<subgroup_matrix_left<f16, $UNIT_K, $UNIT_M>, row_major>(
  &pool, weights$k + SHARED / 8u, SCORE_PITCH);
//end
//end
workgroupBarrier();
//for p in PARTS
{
  //for u in V_LOADS
  pool[v_to + $uu * (V_CELLS * V_PITCH)] = vx$u;
  //end
  workgroupBarrier();
  if ($pu + 1u < $PARTSu) {
    //for u in V_LOADS
    vx$u = v_halves[values_at + $(p + 1)u * V_PART + $uu * (V_CELLS * ROW)];
    //end
  } else {
    //for u in LOADS
    kx$u = k_halves[later_at + $uu * (K_CELLS * ROW)];
    //end
  }
  //for d in PART_OWN
  var o$d = subgroup_matrix_result<f32, $UNIT_N, $UNIT_M>();
  //end
  //for k in C_STEPS
  //for d in PART_OWN
  {
    let at = $ku * $UNIT_Ku * V_PITCH + ($du * $COLUMNSu + own_column) * UNIT_N8;
    let vh = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, row_major>(&pool, at, V_PITCH);
    //for l in Q_LOW
    o$d = subgroupMatrixMultiplyAccumulate(pl$k, vh, o$d);
    //end
    //for l in KV_LOW
    let vl = subgroupMatrixLoad<subgroup_matrix_right<f16, $UNIT_N, $UNIT_K>, row_major>(&pool, at + V_LOW_AT, V_PITCH);
    o$d = subgroupMatrixMultiplyAccumulate(ph$k, vl, o$d);
    //end
    o$d = subgroupMatrixMultiplyAccumulate(ph$k, vh, o$d);
  }
  //end
  //end
  workgroupBarrier();
  //for d in PART_OWN
  subgroupMatrixStore<row_major>(
    &pool, own_query * PART_PITCH + ($du * $COLUMNSu + own_column) * UNIT_N4, o$d, PART_PITCH);
  //end
  workgroupBarrier();
  //for u in PART_SUMS
  {
    let part = bitcast<vec4<f32>>(pool[query * PART_PITCH + $uu * SHARERS + share]);
    sum$(p * PART_SUMS + u) = fma(sum$(p * PART_SUMS + u), vec4(kept), part * part_taken);
  }
  //end
  workgroupBarrier();
}
//end
if (thread < CELLS / 4u) {
  let next = (kv_head * ROOM + min(split + 1u, stop - 1u) * CELLS) / 4u + thread;
  unit_k = units[next];
  unit_v = units[KV_HEADS * ROOM / 4u + next];
}
