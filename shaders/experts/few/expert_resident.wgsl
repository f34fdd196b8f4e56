// y[j, n] = sum_k x[j / ROW_JOBS, k] * W[e, n, k] as in expert_staged.wgsl, in the same order, of jobs alone whose
// experts are still to be found: all of x comes to workgroup memory while that is done, and no barrier follows
// until the lanes are added. $AHEAD blocks of every row of W are loaded ahead of their use. Slots: expert_tile.wgsl.
//
// One workgroup per job and range of outputs. COLS / 8 is $STAGE.

//use experts/expert_tile

@compute @workgroup_size(LANES * GROUPS)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  if (tile.x >= JOBS && tile.y > 0u) { // one stores the choice of a row
    return;
  }
  let row = min(tile.x, JOBS - 1u) / ROW_JOBS * (COLS / 4u);
  //for s in LOADS
  let i$s = min(thread + $su * THREADS, $STAGEu - 1u);
  let lo$s = x[row + 2u * i$s];
  let hi$s = x[row + 2u * i$s + 1u];
  //end
  //for s in LOADS
  put_vec8(0u, i$s, lo$s, hi$s);
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
  workgroupBarrier();
  for (var first = 0u; first < blocks; first += $AHEADu * LANES) {
    //for j in AHEAD
    //for c in BLOCK_VEC8S
    {
      let k = ((first + $ju * LANES) * $BLOCK_VEC8Su + $cu * LANES) + lane;
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
      let own = get_vec8(0u, k);
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
