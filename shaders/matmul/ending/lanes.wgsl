// The end of a matmul's `main` where lanes share outputs: they are added for two pairs of $SUMS rows at
// a time.
//for h in PAIR_HALVES
//for t in SUM_TILES
add_lanes(
  thread,
  row + $(t * SUMS)u,
  tile.z,
  tile.y * GROUPS * $PAIRSu + $(2 * h)u,
  $PAIRSu,
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
