// y[j, n] = sum_k x[j / ROW_JOBS, k] * W[e, n, k] as in expert_matmul.wgsl, in the same order, on hardware: x
// passes through workgroup memory $STAGE vec8s of k at a time, and the weights of those are
// loaded before it is there, as in matmul_staged.wgsl.
//
// One workgroup per tile of at most $ROWS jobs of one expert and range of outputs. COLS / 8 is a multiple
// of $STAGE.

//#import experts/expert_tile

@compute @workgroup_size(LANES * GROUPS)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let tile = place_of(workgroup.xy);
  let expert = expert_of(tile.x, thread) - FIRST_EXPERT;
  if (expert >= SHARD_EXPERTS) { // of another shard, or nobody's
    return;
  }
  // Which outputs the invocation `thread` of workgroup `tile` makes: it shares the pairs from `pair` on with the other lanes of its group.
  let half = MATRIX_ROWS / 2u; // output pairs of the matrix
  let blocks = COLS / 8u / $BLOCK_VEC8Su; // of a row of the matrix
  let lane = thread % LANES;
  let pair = (tile.y * GROUPS + thread / LANES) * $PAIRSu;
  let rows = rows_of(expert);
  let other = rows.pair * blocks; // from a block of an output to that of its pair
  //#for p in PAIRS
  let at$p = (rows.first + min(pair + $pu, half - 1u) * rows.step) * blocks + lane;
  //#for r in ROWS
  var a$p_$r = 0.0;
  var b$p_$r = 0.0;
  //#endfor
  //#endfor
  find_rows(tile.x, thread);
  for (var first = 0u; first < blocks; first += $STAGEu / $BLOCK_VEC8Su) {
    //#for j in STEPS
    //#for p in PAIRS
    let block_a$p_$j = load_block(at$p + first + $ju * LANES);
    let block_b$p_$j = load_block(at$p + other + first + $ju * LANES);
    //#endfor
    //#endfor
    workgroupBarrier();
    //#for s in LOADS
    {
      let i = thread + $su * THREADS;
      let r = i / ($PARTSu * $STAGEu);
      let part = i % ($PARTSu * $STAGEu);
      if (r < $ROWSu) {
        let at = x_rows[r] + first * $BLOCK_VEC8Su * 2u;
        //#if dots == floats
        // x as floats goes by halves of vec8s, so that even one row keeps every
        // invocation busy. Not in a function, which made one row of a [6144, 4096] a tenth slower on an H200.
        staged[(r * 2u + part % 2u) * $STAGEu + part / 2u] = x[at + part];
        //#else
        // x that is rounded: a vec8 together.
        put_vec8(r, part, x[at + 2u * part], x[at + 2u * part + 1u]);
        //#endif
      }
    }
    //#endfor
    workgroupBarrier();
    //#for j in STEPS
    //#for c in BLOCK_VEC8S
    {
      let k = ($ju * $BLOCK_VEC8Su + $cu) * LANES + lane;
      //#for p in PAIRS
      let wa$p = weights_$c(block_a$p_$j);
      let wb$p = weights_$c(block_b$p_$j);
      //#endfor
      //#for r in ROWS
      {
        let own = get_vec8($ru, k);
        //#for p in PAIRS
        a$p_$r = add_dot(a$p_$r, own, wa$p);
        b$p_$r = add_dot(b$p_$r, own, wb$p);
        //#endfor
      }
      //#endfor
    }
    //#endfor
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
