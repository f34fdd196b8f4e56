// y[j, n] = sum_k x[j / ROW_JOBS, k] * W[e, n, k] as in expert_staged.wgsl, in the same order, for jobs that are each a
// tile of their own: x of the job goes to workgroup memory whole, before its expert is known, and no barrier
// follows until the lanes are added. $AHEAD blocks of every row of W are loaded ahead of their use. COLS / 8 is $STAGE.
// Slots: expert_tile.wgsl.

//use experts/expert_tile

@compute @workgroup_size(LANES * GROUPS)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  //for s in LOADS
  let i$s = min(thread + $su * THREADS, $STAGEu - 1u);
  let from$s = tile.x / ROW_JOBS * (COLS / 4u) + 2u * i$s;
  let lo$s = x[from$s];
  let hi$s = x[from$s + 1u];
  //end
  let expert = expert_of(tile.x, thread) - FIRST_EXPERT;
  if (expert >= SHARD_EXPERTS) { // of another shard, or nobody's
    return;
  }
  //use matmul/prologue
  let rows = rows_of(expert);
  let other = rows.pair * blocks; // from a block of an output to that of its pair
  //for p in PAIRS
  let at$p = (rows.first + min(pair + $pu, half - 1u) * rows.step) * blocks + lane;
  var a$p_0 = 0.0;
  var b$p_0 = 0.0;
  //for j in AHEAD
  var block_a$p_$j = load_block(at$p + $ju * LANES);
  var block_b$p_$j = load_block(at$p + other + $ju * LANES);
  //end
  //end
  //for s in LOADS
  if (thread + $su * THREADS < $STAGEu) {
    put_vec8(0u, i$s, lo$s, hi$s);
  }
  //end
  workgroupBarrier();
  for (var first = 0u; first < blocks; first += $AHEADu * LANES) {
    //for j in AHEAD
    //for c in BLOCK_VEC8S
    {
      let own = get_vec8(0u, (first + $ju * LANES) * $BLOCK_VEC8Su + $cu * LANES + lane);
      //for p in PAIRS
      let wa$p = weights_$c(block_a$p_$j);
      let wb$p = weights_$c(block_b$p_$j);
      //end
      //for t in TURNS
      if ($cu == $BLOCK_VEC8Su - 1u) {
        let next = min(first + ($AHEADu + $ju) * LANES, blocks - LANES);
        //for p in PAIRS
        block_a$p_$j = load_block(at$p + next);
        block_b$p_$j = load_block(at$p + other + next);
        //end
      }
      //end
      //for p in PAIRS
      a$p_0 = add_dot(a$p_0, own, wa$p);
      b$p_0 = add_dot(b$p_0, own, wb$p);
      //end
    }
    //end
    //end
  }
  //use experts/expert_ending
}
