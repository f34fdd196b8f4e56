// y[r, n] = sum_k x[r, k] * W[n, k] as in matmul.wgsl, in the same order, on hardware: x
// passes through workgroup memory $STAGE eights of k at a time, and the weights of those are on
// their way before it is there.
//
// `staged` holds for each row the low halves of its eights and then the high ones, so that
// neighbouring lanes read neighbouring vectors. COLS / 8 / SPLITS is a multiple of $STAGE.

const THREADS = $THREADSu; // LANES * GROUPS

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

  //for p in PAIRS
  let at$p = min(pair + $pu, half - 1u) * raws + tile.z * range + lane;
  //for r in ROWS
  var a$p_$r = 0.0;
  var b$p_$r = 0.0;
  //end
  //end
  for (var first = 0u; first < range; first += $STAGEu / $CHUNKSu) {
    //for j in STEPS
    //for p in PAIRS
    let raw_a$p_$j = load_raw(at$p + first + $ju * LANES);
    let raw_b$p_$j = load_raw(at$p + half * raws + first + $ju * LANES);
    //end
    //end
    workgroupBarrier();
    //for s in LOADS
    {
      let i = thread + $su * THREADS;
      let r = i / ($STAGEu * 2u);
      let quad = i % ($STAGEu * 2u);
      if (r < $ROWSu) {
        let source = min(row + r, rows - 1u) * (COLS / 4u) + (tile.z * range + first) * $CHUNKSu * 2u + quad;
        staged[(r * 2u + quad % 2u) * $STAGEu + quad / 2u] = x[source];
      }
    }
    //end
    workgroupBarrier();
    //for j in STEPS
    //for c in CHUNKS
    {
      let k = ($ju * $CHUNKSu + $cu) * LANES + lane;
      //for p in PAIRS
      let wa$p = eight_$c(raw_a$p_$j);
      let wb$p = eight_$c(raw_b$p_$j);
      //end
      //for r in ROWS
      {
        let lo = staged[$ru * 2u * $STAGEu + k];
        let hi = staged[($ru * 2u + 1u) * $STAGEu + k];
        //for p in PAIRS
        a$p_$r = add8(a$p_$r, lo, hi, wa$p);
        b$p_$r = add8(b$p_$r, lo, hi, wb$p);
        //end
      }
      //end
    }
    //end
    //end
  }
  $DONE
}
