// y[r, n] = sum_k x[r, k] * W[n, k] as in matmul.wgsl, in the same order, for few rows of narrow matrices: the
// whole range of k of x is brought to workgroup memory once, while the first weights are on their way, and
// no barrier follows until the lanes are added. $AHEAD blocks of every row of W are loaded ahead of their use.
//
// COLS / 8 / SPLIT_K is $STAGE, or the last block of some lanes is missing (part/within.wgsl): then `hold` puts zeros there,
// and all blocks are loaded ahead. Slots `epilogue`, `out`, `weights`, `sums` and `ending` are those of matmul.wgsl, `dot`
// that of matmul_staged.wgsl; besides:
//   held: what `hold` declares outside of functions (hold/*_held.wgsl).
//   hold: the statements that put x of the range into workgroup memory by `put_vec8` (hold/*.wgsl).

//use epilogue
//use out
//use matmul/common_rows
//use weights
//use sums
//use dot
//use held
//use matmul/part/within

const THREADS = $THREADSu; // LANES * GROUPS

@compute @workgroup_size(LANES * GROUPS)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  //use matmul/prologue_rows
  let mine = within(lane, range - 1u);
  let last = range - 1u - mine;

  //for p in PAIRS
  let at$p = min(pair + $pu, half - 1u) * blocks + tile.z * range + mine;
  //for r in ROWS
  var a$p_$r = 0.0;
  var b$p_$r = 0.0;
  //end
  //for j in AHEAD
  var block_a$p_$j = load_block(at$p + within($ju * LANES, last));
  var block_b$p_$j = load_block(at$p + half * blocks + within($ju * LANES, last));
  //end
  //end
  //use hold
  workgroupBarrier();
  for (var first = 0u; first < range; first += $AHEADu * LANES) {
    //for j in AHEAD
    //for c in BLOCK_VEC8S
    {
      let k = (first + $ju * LANES) * $BLOCK_VEC8Su + $cu * packed_lanes() + packed;
      //for p in PAIRS
      let wa$p = weights_$c(block_a$p_$j);
      let wb$p = weights_$c(block_b$p_$j);
      //end
      //for t in TURNS
      if ($cu == $BLOCK_VEC8Su - 1u) {
        let next = min(first + ($AHEADu + $ju) * LANES, range - LANES);
        //for p in PAIRS
        block_a$p_$j = load_block(at$p + next);
        block_b$p_$j = load_block(at$p + half * blocks + next);
        //end
      }
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
  //use ending
}
