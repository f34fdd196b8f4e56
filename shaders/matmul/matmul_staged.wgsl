// y[r, n] = sum_k x[r, k] * W[n, k] as in matmul.wgsl, in the same order, on hardware: x
// passes through workgroup memory $STAGE eights of k at a time, and the weights of those are on
// their way before it is there.
//
// COLS / 8 / SPLITS is a multiple of $STAGE. How x waits there and is multiplied comes from
// dot_*.wgsl: `put_eight`, `get_eight`, `add_dot` and `weights_<c>`.

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
      let r = i / ($PARTSu * $STAGEu);
      let part = i % ($PARTSu * $STAGEu);
      if (r < $ROWSu) {
        let at = min(row + r, rows - 1u) * (COLS / 4u) + (tile.z * range + first) * $CHUNKSu * 2u;
        // Floats by halves of eights, so that even one row keeps every invocation busy; not in a
        // function, which made one row of a [6144, 4096] a tenth slower on an H200.
        //for f in FLOATS
        staged[(r * 2u + part % 2u) * $STAGEu + part / 2u] = x[at + part];
        //end
        //for f in INTEGERS
        put_eight(r, part, x[at + 2u * part], x[at + 2u * part + 1u]);
        //end
      }
    }
    //end
    workgroupBarrier();
    //for j in STEPS
    //for c in CHUNKS
    {
      let k = ($ju * $CHUNKSu + $cu) * LANES + lane;
      //for p in PAIRS
      let wa$p = weights_$c(raw_a$p_$j);
      let wb$p = weights_$c(raw_b$p_$j);
      //end
      //for r in ROWS
      {
        let own = get_eight($ru, k);
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
  $DONE
}
