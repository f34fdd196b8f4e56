// y[r, n] = sum_k x[r, k] * W[n, k] for the rows of one shard of W, f32 accumulation; x is read through
// the cache. For software adapters and for widths that matmul_staged.wgsl cannot take.
//
// The order of every sum, shared with matmul_staged.wgsl: k is cut into SPLIT_K
// equal ranges, each a sum of its own (tile.z). In a range, lane l of LANES sums the packed blocks
// l, l + LANES, ... of a row, one k after the other: k = 8 * (l + j * LANES) .. + 7 in order of j, unless PACKED_LANES
// are fewer. The lanes are added in order of l. Neither rows nor tiles enter the order, so a row has the same bits
// whatever number of rows is in flight.
//
// Outputs come in pairs (c, c + MATRIX_ROWS / 2): SwiGLU's gate and up are half a matrix apart. LANES
// invocations share $PAIRS pairs of $ROWS rows of x: each weight is read once for all rows, each x
// once for all pairs. A workgroup holds GROUPS such groups of lanes.
//
// A weight format is a `PackedBlock` of $BLOCK_VEC8S vec8s that are PACKED_LANES vec8s apart: vec8 c of a row's block
// b is k = 8 * (b % PACKED_LANES + (b / PACKED_LANES * $BLOCK_VEC8S + c) * PACKED_LANES): rows of some widths are
// packed for fewer lanes than share an output.
//
// Imported by this and by the other matmuls:
//   lib/matmul_sizes: x, sizes, and for how many lanes rows of W are packed;
//   lib/weights_FORMAT: W as `PackedBlock`, `fn load_block(i)` and `fn vec8_<c>(block)`, or what lib/dot_fp4 takes;
//   lib/epilogue: `fn epilogue(row, c, half, sum)` of the outputs (c, c + half) of a row;
//   lib/matmul_outputs: how lanes are added, `out`, and what is done after a group's and after a row's outputs.

//#import lib/matmul_sizes
//#import lib/epilogue
//#import lib/matmul_outputs
//#import lib/weights_$weights
//#import lib/dot

@compute @workgroup_size(LANES * GROUPS)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  //#if epilogue == bias
  own_range = tile.z;
  //#endif
  // The outputs of invocation `thread` of workgroup `tile`: with the other lanes of its group it shares the pairs from
  // `pair` on, for a tile of consecutive rows of x and one range of k.
  let half = MATRIX_ROWS / 2u; // output pairs of the matrix
  let blocks = COLS / 8u / $BLOCK_VEC8Su; // of a row of the matrix
  let lane = thread % LANES;
  let pair = (tile.y * GROUPS + thread / LANES) * $PAIRSu;
  let range = blocks / SPLIT_K; // blocks of the range
  let row = tile.x * $ROWSu; // first of the tile
  let rows = arrayLength(&x) / (COLS / 4u);
  // The lane's first vec8 of a range.
  let packed = lane / packed_lanes() * packed_lanes() * $BLOCK_VEC8Su + lane % packed_lanes();
  //#for r in ROWS
  let x$r = min(row + $ru, rows - 1u) * (COLS / 8u);
  //#endfor

  //#for p in PAIRS
  let at$p = min(pair + $pu, half - 1u) * blocks + tile.z * range;
  //#for r in ROWS
  var a$p_$r = 0.0;
  var b$p_$r = 0.0;
  //#endfor
  //#endfor
  for (var i = lane; i < range; i += LANES) {
    //#for p in PAIRS
    let block_a$p = load_block(at$p + i);
    let block_b$p = load_block(at$p + half * blocks + i);
    //#endfor
    //#for c in BLOCK_VEC8S
    {
      let k = (tile.z * range + i - lane) * $BLOCK_VEC8Su + $cu * packed_lanes() + packed;
      //#for p in PAIRS
      let wa$p = weights_$c(block_a$p);
      let wb$p = weights_$c(block_b$p);
      //#endfor
      //#for r in ROWS
      {
        let at = (x$r + k) * 2u;
        let own = x_of(x[at], x[at + 1u]);
        //#for p in PAIRS
        a$p_$r = add_dot(a$p_$r, own, wa$p);
        b$p_$r = add_dot(b$p_$r, own, wb$p);
        //#endfor
      }
      //#endfor
    }
    //#endfor
  }
  //#import lib/matmul_ending_statements
}
