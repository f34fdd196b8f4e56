// The end of `main` of expert_staged.wgsl and expert_prefetch.wgsl: two pairs of a group at a time, or its only one.
//for h in PAIR_HALVES
//for t in SUM_TILES
add_lanes(
  thread,
  tile.x,
  $(t * SUMS)u,
  tile.y * GROUPS * $PAIRSu + $(2 * h)u,
  //for s in SUMS
  vec4<f32>(
    a$(2 * h)_$(t * SUMS + s),
    b$(2 * h)_$(t * SUMS + s),
    a$(2 * h + 1)_$(t * SUMS + s),
    b$(2 * h + 1)_$(t * SUMS + s),
  ),
  //end
);
//end
//end
//for h in ONE_PAIR
//for t in SUM_TILES
add_lanes(
  thread,
  tile.x,
  $(t * SUMS)u,
  tile.y * GROUPS,
  //for s in SUMS
  vec4<f32>(a0_$(t * SUMS + s), b0_$(t * SUMS + s), 0.0, 0.0),
  //end
);
//end
//end
