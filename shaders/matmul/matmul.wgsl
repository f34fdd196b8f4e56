// y[r, n] = sum_k x[r, k] * W[n, k] for the rows of one shard of W, f32 accumulation; x comes through
// the cache. For software adapters and for widths that matmul_staged.wgsl cannot take.
//
// The order of every sum, shared with matmul_staged.wgsl: k is cut into SPLITS
// equal ranges, each a sum of its own (tile.z). In a range, lane l of LANES sums
// k = 8 * (l + j * LANES) .. + 7 in order of j, one k after the other; the lanes are added in order
// of l. Neither rows nor tiles enter the order, so a row has the same bits whatever number of rows is
// in flight.
//
// Outputs come in pairs (c, c + SHARD_ROWS / 2): SwiGLU's gate and up lie half apart. LANES
// invocations share $PAIRS pairs of $ROWS rows of x: each weight is read once for all rows, each x
// once for all pairs. A workgroup holds GROUPS such groups of lanes.
//
// A weight format is a `Raw` of $CHUNKS eights that lie LANES eights apart: eight c of the lane's raw
// j is k = 8 * (l + (j * $CHUNKS + c) * LANES). `load_raw` and `eight_<c>` come from weights_*.wgsl,
// `finish` from finish_*.wgsl, `out` from matmul_out*.wgsl, `add_lanes` from matmul_lanes.wgsl.

@compute @workgroup_size(LANES * GROUPS)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let half = SHARD_ROWS / 2u;
  let raws = COLS / 8u / $CHUNKSu;
  let range = raws / SPLITS;
  let lane = thread % LANES;
  let pair = (tile.y * GROUPS + thread / LANES) * $PAIRSu;
  let row = tile.x * $ROWSu;
  let rows = arrayLength(&x) / (COLS / 4u);
  //for r in ROWS
  let x$r = min(row + $ru, rows - 1u) * (COLS / 8u);
  //end

  //for p in PAIRS
  let at$p = min(pair + $pu, half - 1u) * raws + tile.z * range;
  //for r in ROWS
  var a$p_$r = 0.0;
  var b$p_$r = 0.0;
  //end
  //end
  for (var i = lane; i < range; i += LANES) {
    //for p in PAIRS
    let raw_a$p = load_raw(at$p + i);
    let raw_b$p = load_raw(at$p + half * raws + i);
    //end
    //for c in CHUNKS
    {
      let k = (tile.z * range + i - lane) * $CHUNKSu + $cu * LANES + lane;
      //for p in PAIRS
      let wa$p = eight_$c(raw_a$p);
      let wb$p = eight_$c(raw_b$p);
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
  $DONE
}
