// y[r, n] = sum_k x[r, k] * W[n, k] for the rows of one shard of W, f32 accumulation; x is read through
// the cache. For software adapters and for widths that matmul_staged.wgsl cannot take.
//
// The order of every sum, shared with matmul_staged.wgsl: k is cut into SPLIT_K
// equal ranges, each a sum of its own (tile.z). In a range, lane l of LANES sums the packed blocks
// l, l + LANES, ... of a row, one k after the other: k = 8 * (l + j * LANES) .. + 7 in order of j, but where
// PACKED_LANES are fewer. The lanes are added in order of l. Neither rows nor tiles enter the order, so a
// row has the same bits whatever number of rows is in flight.
//
// Outputs come in pairs (c, c + MATRIX_ROWS / 2): SwiGLU's gate and up are half a matrix apart. LANES
// invocations share $PAIRS pairs of $ROWS rows of x: each weight is read once for all rows, each x
// once for all pairs. A workgroup holds GROUPS such groups of lanes.
//
// A weight format is a `PackedBlock` of $BLOCK_VEC8S vec8s that are PACKED_LANES vec8s apart: vec8 c of a row's block
// b is k = 8 * (b % PACKED_LANES + (b / PACKED_LANES * $BLOCK_VEC8S + c) * PACKED_LANES): rows of some widths are packed
// for fewer lanes than share an output.
// Slots of this and of the other matmuls:
//   epilogue: `fn epilogue(row, c, half, sum)` of the outputs (c, c + half) of a row (epilogue/*.wgsl).
//   out: binding 2, and what is done after a group's and after a row's outputs (out.wgsl, out_partial.wgsl).
//   weights: `PackedBlock`, `fn load_block(i)` and `fn vec8_<c>(block)` (weights/weights_*.wgsl).
//   sums: workgroup memory for the sums, and how lanes add them (ending/add_lanes.wgsl, ending/one_lane_sums.wgsl).
//   ending: the statements that pass on the sums a<pair>_<row> and b<pair>_<row> to the
//     epilogue (ending/*.wgsl).

//use epilogue
//use out
//use matmul/common_rows
//use weights
//use matmul/dot/add8
//use sums

@compute @workgroup_size(LANES * GROUPS)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  //use matmul/prologue_rows
  //for r in ROWS
  let x$r = min(row + $ru, rows - 1u) * (COLS / 8u);
  //end

  //for p in PAIRS
  let at$p = min(pair + $pu, half - 1u) * blocks + tile.z * range;
  //for r in ROWS
  var a$p_$r = 0.0;
  var b$p_$r = 0.0;
  //end
  //end
  for (var i = lane; i < range; i += LANES) {
    //for p in PAIRS
    let block_a$p = load_block(at$p + i);
    let block_b$p = load_block(at$p + half * blocks + i);
    //end
    //for c in BLOCK_VEC8S
    {
      let k = (tile.z * range + i - lane) * $BLOCK_VEC8Su + $cu * packed_lanes() + packed;
      //for p in PAIRS
      let wa$p = vec8_$c(block_a$p);
      let wb$p = vec8_$c(block_b$p);
      //end
      //for r in ROWS
      {
        let at = (x$r + k) * 2u;
        let lo = x[at];
        let hi = x[at + 1u];
        //for p in PAIRS
        a$p_$r = add8(a$p_$r, lo, hi, wa$p);
        b$p_$r = add8(b$p_$r, lo, hi, wb$p);
        //end
      }
      //end
    }
    //end
  }
  //use ending
}
