// lanes.wgsl of a group with one pair alone.
//for t in SUM_TILES
add_pairs(
  thread,
  row + $(t * SUMS)u,
  tile.z,
  tile.y * GROUPS,
  //for s in SUMS
  vec2<f32>(a0_$(t * SUMS + s), b0_$(t * SUMS + s)),
  //end
);
//end
