// y[j, n] = sum_k x[j / ROW_JOBS, k] * W[e, n, k] as in expert_staged.wgsl, in the same order, for tiles of many
// jobs: while one stage of x is multiplied the next one and its weights are prefetched, x into the other
// of two buffers in workgroup memory, as in matmul_prefetch.wgsl. One barrier a stage.

//#import experts/expert_tile

@compute @workgroup_size(LANES * GROUPS)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let expert = expert_of(tile.x, thread) - FIRST_EXPERT;
  if (expert >= SHARD_EXPERTS) { // of another shard, or nobody's
    return;
  }
  // Which outputs the invocation `thread` of workgroup `tile` makes: it shares the pairs from `pair` on with the other lanes of its group.
  let half = MATRIX_ROWS / 2u; // output pairs of the matrix
  let blocks = COLS / 8u / $BLOCK_VEC8Su; // of a row of the matrix
  let lane = thread % LANES;
  let pair = (tile.y * GROUPS + thread / LANES) * $PAIRSu;
  let step = $STAGEu / $BLOCK_VEC8Su;

  let rows = rows_of(expert);
  let other = rows.pair * blocks; // from a block of an output to that of its pair
  //#for p in PAIRS
  let at$p = (rows.first + min(pair + $pu, half - 1u) * rows.step) * blocks + lane;
  //#for r in ROWS
  var a$p_$r = 0.0;
  var b$p_$r = 0.0;
  //#endfor
  //#for j in STEPS
  var block_a$p_$j = load_block(at$p + $ju * LANES);
  var block_b$p_$j = load_block(at$p + other + $ju * LANES);
  //#endfor
  //#endfor
  find_rows(tile.x, thread);
  workgroupBarrier();
  //#for s in LOADS
  let i$s = thread + $su * THREADS;
  let source$s = x_rows[min(i$s / $STAGEu, $ROWSu - 1u)] + i$s % $STAGEu * 2u;
  if (i$s < $ROWSu * $STAGEu) {
    put_vec8(i$s / $STAGEu, i$s % $STAGEu, x[source$s], x[source$s + 1u]);
  }
  //#endfor
  var buffer = 0u; // first row of the one that is multiplied
  for (var first = 0u; first < blocks; first += step) {
    let next = min(first + step, blocks - step);
    workgroupBarrier();
    //#for s in LOADS
    let lo$s = x[source$s + next * $BLOCK_VEC8Su * 2u];
    let hi$s = x[source$s + next * $BLOCK_VEC8Su * 2u + 1u];
    //#endfor
    //#for j in STEPS
    //#for c in BLOCK_VEC8S
    {
      let k = ($ju * $BLOCK_VEC8Su + $cu) * LANES + lane;
      //#for p in PAIRS
      let wa$p = weights_$c(block_a$p_$j);
      let wb$p = weights_$c(block_b$p_$j);
      //#endfor
      if ($cu == $BLOCK_VEC8Su - 1u) {
        //#for p in PAIRS
        block_a$p_$j = load_block(at$p + next + $ju * LANES);
        block_b$p_$j = load_block(at$p + other + next + $ju * LANES);
        //#endfor
      }
      //#for r in ROWS
      {
        let own = get_vec8(buffer + $ru, k);
        //#for p in PAIRS
        a$p_$r = add_dot(a$p_$r, own, wa$p);
        b$p_$r = add_dot(b$p_$r, own, wb$p);
        //#endfor
      }
      //#endfor
    }
    //#endfor
    //#endfor
    buffer = $ROWSu - buffer;
    //#for s in LOADS
    if (i$s < $ROWSu * $STAGEu) {
      put_vec8(buffer + i$s / $STAGEu, i$s % $STAGEu, lo$s, hi$s);
    }
    //#endfor
  }
  // The end of `main` of expert_staged.wgsl and expert_prefetch.wgsl: two pairs of a group at a time, or its only one.
  //#for h in PAIR_HALVES
  //#for t in SUM_TILES
  add_lanes(
    thread,
    tile.x,
    $(t * SUMS)u,
    tile.y * GROUPS * $PAIRSu + $(2 * h)u,
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
  //#if ONE_PAIR
  //#for t in SUM_TILES
  add_lanes(
    thread,
    tile.x,
    $(t * SUMS)u,
    tile.y * GROUPS,
    //#for s in SUMS
    vec4<f32>(a0_$(t * SUMS + s), b0_$(t * SUMS + s), 0.0, 0.0),
    //#endfor
  );
  //#endfor
  //#endif
}
