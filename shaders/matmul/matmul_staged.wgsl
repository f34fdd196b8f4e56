// y[r, n] = sum_k x[r, k] * W[n, k] as in matmul.wgsl, in the same order, on hardware: x
// passes through workgroup memory $STAGE vec8s of k at a time, and the weights of those are
// loaded before it is there.
//
// COLS / 8 / SPLIT_K is a multiple of $STAGE, or the last stage of a range is a part of one: part/within.wgsl.
// Slots `epilogue`, `out`, `weights`, `sums` and `ending` are those
// of matmul.wgsl; besides:
//   dot: how x is stored in workgroup memory and multiplied: `fn put_vec8(row, e, lo, hi)`,
//     `fn get_vec8(row, e)`, `fn add_dot(sum, x, w)` and `fn weights_<c>(block)` (dot/*.wgsl).
//   load: the statement that stores part `part` of row `r` of x (load_*.wgsl, part/load_*.wgsl).

//use epilogue
//use out
//use matmul/common_rows
//use weights
//use sums
//use dot
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
  //end
  for (var first = 0u; first < range; first += $STAGEu / $BLOCK_VEC8Su) {
    //for j in STEPS
    //for p in PAIRS
    let block_a$p_$j = load_block(at$p + within(first + $ju * LANES, last));
    let block_b$p_$j = load_block(at$p + half * blocks + within(first + $ju * LANES, last));
    //end
    //end
    let left = (range - first) * $BLOCK_VEC8Su * 2u;
    workgroupBarrier();
    //for s in LOADS
    {
      let i = thread + $su * THREADS;
      let r = i / ($PARTSu * $STAGEu);
      let part = i % ($PARTSu * $STAGEu);
      if (r < $ROWSu) {
        let at = min(row + r, rows - 1u) * (COLS / 4u) + (tile.z * range + first) * $BLOCK_VEC8Su * 2u;
        //use load
      }
    }
    //end
    workgroupBarrier();
    //for j in STEPS
    //for c in BLOCK_VEC8S
    {
      let k = $(j * BLOCK_VEC8S)u * LANES + $cu * packed_lanes() + packed;
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
  //use ending
}
