// y[j, n] = sum_k x[j / ROW_JOBS, k] * W[e, n, k] as in expert_staged.wgsl, in the same order, for tiles of many
// jobs: while one stage of x is multiplied the next one and its weights are prefetched, x into the other
// of two buffers in workgroup memory, as in matmul_prefetch.wgsl. One barrier a stage. Slots: expert_tile.wgsl.

//use experts/expert_tile

@compute @workgroup_size(LANES * GROUPS)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let expert = expert_of(tile.x, thread) - FIRST_EXPERT;
  if (expert >= SHARD_EXPERTS) { // of another shard, or nobody's
    return;
  }
  //use matmul/prologue
  let step = $STAGEu / $BLOCK_VEC8Su;

  let rows = rows_of(expert);
  let other = rows.pair * blocks; // from a block of an output to that of its pair
  //for p in PAIRS
  let at$p = (rows.first + min(pair + $pu, half - 1u) * rows.step) * blocks + lane;
  //for r in ROWS
  var a$p_$r = 0.0;
  var b$p_$r = 0.0;
  //end
  //for j in STEPS
  var block_a$p_$j = load_block(at$p + $ju * LANES);
  var block_b$p_$j = load_block(at$p + other + $ju * LANES);
  //end
  //end
  find_rows(tile.x, thread);
  workgroupBarrier();
  //for s in LOADS
  let i$s = thread + $su * THREADS;
  let source$s = x_rows[min(i$s / $STAGEu, $ROWSu - 1u)] + i$s % $STAGEu * 2u;
  if (i$s < $ROWSu * $STAGEu) {
    put_vec8(i$s / $STAGEu, i$s % $STAGEu, x[source$s], x[source$s + 1u]);
  }
  //end
  var buffer = 0u; // first row of the one that is multiplied
  for (var first = 0u; first < blocks; first += step) {
    let next = min(first + step, blocks - step);
    workgroupBarrier();
    //for s in LOADS
    let lo$s = x[source$s + next * $BLOCK_VEC8Su * 2u];
    let hi$s = x[source$s + next * $BLOCK_VEC8Su * 2u + 1u];
    //end
    //for j in STEPS
    //for c in BLOCK_VEC8S
    {
      let k = ($ju * $BLOCK_VEC8Su + $cu) * LANES + lane;
      //for p in PAIRS
      let wa$p = weights_$c(block_a$p_$j);
      let wb$p = weights_$c(block_b$p_$j);
      //end
      if ($cu == $BLOCK_VEC8Su - 1u) {
        //for p in PAIRS
        block_a$p_$j = load_block(at$p + next + $ju * LANES);
        block_b$p_$j = load_block(at$p + other + next + $ju * LANES);
        //end
      }
      //for r in ROWS
      {
        let own = get_vec8(buffer + $ru, k);
        //for p in PAIRS
        a$p_$r = add_dot(a$p_$r, own, wa$p);
        b$p_$r = add_dot(b$p_$r, own, wb$p);
        //end
      }
      //end
    }
    //end
    //end
    buffer = $ROWSu - buffer;
    //for s in LOADS
    if (i$s < $ROWSu * $STAGEu) {
      put_vec8(buffer + i$s / $STAGEu, i$s % $STAGEu, lo$s, hi$s);
    }
    //end
  }
  //use experts/expert_ending
}
