// The last statements of the matmuls, after the loop over k: the lanes' sums a<pair>_<row> and
// b<pair>_<row> go to the functions of lib/matmul_outputs.wgsl that add them ($ending). They read of
// `main`: tile, thread, the workgroup's first `row` of x, the invocation's first `pair` of outputs,
// `rows` of x and `half`, the output pairs of the matrix.
//#if ending == one_lane
// Each invocation makes its outputs alone. They go through workgroup memory to a loop, because `epilogue` may be long
// and software adapters would compile unrolled calls of it slowly.
//#for p in PAIRS
//#for r in ROWS
sums[thread * $(PAIRS * ROWS)u + $(p * ROWS + r)u] = vec2<f32>(a$p_$r, b$p_$r);
//#endfor
//#endfor
for (var i = 0u; i < $(PAIRS * ROWS)u; i++) {
  let c = pair + i / $ROWSu;
  let r = row + i % $ROWSu;
  if (c < half && r < rows) {
    epilogue(tile.z * rows + r, c, half, sums[thread * $(PAIRS * ROWS)u + i]);
  }
}
//#else if ending == pair
// The lanes of a group share one pair of outputs.
//#for t in SUM_TILES
add_pairs(
  thread,
  row + $(t * SUMS)u,
  tile.z,
  tile.y * GROUPS,
  //#for s in SUMS
  vec2<f32>(a0_$(t * SUMS + s), b0_$(t * SUMS + s)),
  //#endfor
);
//#endfor
//#else
// The lanes of a group share several pairs: they are added for two pairs of $SUMS rows at a time.
//#for h in PAIR_HALVES
//#for t in SUM_TILES
add_lanes(
  thread,
  row + $(t * SUMS)u,
  tile.z,
  tile.y * GROUPS * $PAIRSu + $(2 * h)u,
  $PAIRSu,
  //#for s in SUMS
  vec4<f32>(
    a$(2 * h)_$(t * SUMS + s),
    b$(2 * h)_$(t * SUMS + s),
    a$(2 * h + 1)_$(t * SUMS + s),
    b$(2 * h + 1)_$(t * SUMS + s),
  ),
  //#endfor
);
//#endfor
//#endfor
//#endif
