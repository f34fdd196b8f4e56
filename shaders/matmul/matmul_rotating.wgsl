// As matmul_resident.wgsl, with a body of one block of each row of W: the blocks on their way move up.

//use epilogue
//use out
//use matmul/common_rows
//use weights
//use sums
//use dot
//use held

const THREADS = $THREADSu; // LANES * GROUPS

@compute @workgroup_size(LANES * GROUPS)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  //use matmul/prologue_rows

  //for p in PAIRS
  let at$p = min(pair + $pu, half - 1u) * blocks + tile.z * range + lane;
  //for r in ROWS
  var a$p_$r = 0.0;
  var b$p_$r = 0.0;
  //end
  //for j in AHEAD
  var block_a$p_$j = load_block(at$p + min($ju * LANES, range - LANES));
  var block_b$p_$j = load_block(at$p + half * blocks + min($ju * LANES, range - LANES));
  //end
  //end
  //use hold
  workgroupBarrier();
  for (var first = 0u; first < range; first += LANES) {
    //for c in BLOCK_VEC8S
    {
      let k = first * $BLOCK_VEC8Su + $cu * LANES + lane;
      //for p in PAIRS
      let wa$p = weights_$c(block_a$p_0);
      let wb$p = weights_$c(block_b$p_0);
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
    let next = min(first + $AHEADu * LANES, range - LANES);
    //for p in PAIRS
    //for j in MOVED
    block_a$p_$j = block_a$p_$(j + 1);
    block_b$p_$j = block_b$p_$(j + 1);
    //end
    block_a$p_$MOVED = load_block(at$p + next);
    block_b$p_$MOVED = load_block(at$p + half * blocks + next);
    //end
  }
  //use ending
}
