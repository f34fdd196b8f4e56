// The sums of a split in chunk_units.wgsl go through the pool, PART fours of a head at a time, to those of the splits
// before. The next split's keys are asked for.

//for u in LOADS
kx$u = k_halves[later + $uu * THREADS];
//end
if (thread < CELLS / 4u) {
  let next = (kv_head * ROOM + min(split + 1u, stop - 1u) * CELLS) / 4u + thread;
  unit_k = units[next];
  unit_v = units[KV_HEADS * ROOM / 4u + next];
}
//for p in PARTS
//for d in PART_OWN
subgroupMatrixStore<row_major>(
  &pool, own_query * PART_PITCH + ($du * $COLUMNSu + own_column) * UNIT_N4, o$(p * PART_OWN + d), PART_PITCH);
//end
workgroupBarrier();
//for u in PART_SUMS
{
  let part = bitcast<vec4<f32>>(pool[query * PART_PITCH + $uu * SHARERS + share]);
  sum$(p * PART_SUMS + u) = fma(sum$(p * PART_SUMS + u), vec4(kept), part * raised * taken);
}
//end
workgroupBarrier();
//end
