// y[j, n] = sum_k x[j / ROW_JOBS, k] * W[e, n, k] as in expert_matmul.wgsl, in the same order, on hardware: x
// passes through workgroup memory $STAGE vec8s of k at a time, and the weights of those are
// loaded before it is there, as in matmul_staged.wgsl. Slots: expert_tile.wgsl, and
//   load: the statement that stores part `part` of row `r` of x (matmul/load_*.wgsl).
//
// One workgroup per tile of at most $ROWS jobs of one expert and range of outputs. COLS / 8 is a multiple
// of $STAGE.

//use experts/expert_tile

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
  //use matmul/prologue
  let rows = rows_of(expert);
  let other = rows.pair * blocks; // from a block of an output to that of its pair
  //for p in PAIRS
  let at$p = (rows.first + min(pair + $pu, half - 1u) * rows.step) * blocks + lane;
  //for r in ROWS
  var a$p_$r = 0.0;
  var b$p_$r = 0.0;
  //end
  //end
  find_rows(tile.x, thread);
  for (var first = 0u; first < blocks; first += $STAGEu / $BLOCK_VEC8Su) {
    //for j in STEPS
    //for p in PAIRS
    let block_a$p_$j = load_block(at$p + first + $ju * LANES);
    let block_b$p_$j = load_block(at$p + other + first + $ju * LANES);
    //end
    //end
    workgroupBarrier();
    //for s in LOADS
    {
      let i = thread + $su * THREADS;
      let r = i / ($PARTSu * $STAGEu);
      let part = i % ($PARTSu * $STAGEu);
      if (r < $ROWSu) {
        let at = x_rows[r] + first * $BLOCK_VEC8Su * 2u;
        //use load
      }
    }
    //end
    workgroupBarrier();
    //for j in STEPS
    //for c in BLOCK_VEC8S
    {
      let k = ($ju * $BLOCK_VEC8Su + $cu) * LANES + lane;
      //for p in PAIRS
      let wa$p = weights_$c(block_a$p_$j);
      let wb$p = weights_$c(block_b$p_$j);
      //end
      //for r in ROWS
      {
        let own = get_vec8($ru, k);
        //for p in PAIRS
        a$p_$r = add_dot(a$p_$r, own, wa$p);
        b$p_$r = add_dot(b$p_$r, own, wb$p);
        //end
      }
      //end
    }
    //end
    //end
  }
  //use experts/expert_ending
}
