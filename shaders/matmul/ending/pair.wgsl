// lanes.wgsl of a group with one pair alone.
//for t in SUM_TILES
add_lanes(
  thread,
  row + $(t * SUMS)u,
  tile.z,
  tile.y * GROUPS,
  1u,
  //for s in SUMS
  vec4<f32>(a0_$(t * SUMS + s), b0_$(t * SUMS + s), 0.0, 0.0),
  //end
);
//end
