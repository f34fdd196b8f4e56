// y[r, n] = sum_k x[r, k] * W[n, k] for the rows of one shard of W, f32 accumulation.
//
// Outputs come in pairs (c, c + SHARD_ROWS / 2): SwiGLU's gate and up lie half apart. LANES
// invocations share $PAIRS pairs of $ROWS rows of x: each weight is read once for all rows, each x
// once for all pairs. A workgroup holds GROUPS such groups of lanes.
//
// Lane l sums k = 8 * (l + j * LANES) .. + 7 in order of j, one k after the other; the lanes are
// added in order of l. Neither $ROWS nor $PAIRS enters the order, so a row has the same bits
// whatever number of rows is in flight.
//
// A weight format is a `Raw` of $CHUNKS eights that lie LANES eights apart: eight c of the lane's raw
// j is k = 8 * (l + (j * $CHUNKS + c) * LANES). `load_raw`, `eight_<c>` and `finish` come from the files around
// this one.

override COLS: u32; // k; a multiple of 8
override SHARD_ROWS: u32; // rows of W in this shard; even
override OUT_COLS: u32; // row stride of out
override FIRST: u32; // column of out where the shard begins
override LANES: u32;
override GROUPS: u32;

const SUMS = $ROWSu * $PAIRSu;

@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>; // [rows, COLS / 4]
@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [rows, OUT_COLS]

var<workgroup> partial: array<vec2<f32>, LANES * GROUPS * SUMS>;

fn add8(sum: f32, lo: vec4<f32>, hi: vec4<f32>, w: Eight) -> f32 {
  let a = fma(lo.w, w.lo.w, fma(lo.z, w.lo.z, fma(lo.y, w.lo.y, fma(lo.x, w.lo.x, sum))));
  return fma(hi.w, w.hi.w, fma(hi.z, w.hi.z, fma(hi.y, w.hi.y, fma(hi.x, w.hi.x, a))));
}

@compute @workgroup_size(LANES * GROUPS)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let half = SHARD_ROWS / 2u;
  let raws = COLS / 8u / $CHUNKSu;
  let lane = thread % LANES;
  let pair = (tile.x * GROUPS + thread / LANES) * $PAIRSu;
  let row = tile.y * $ROWSu;

  //for p in PAIRS
  let at$p = min(pair + $pu, half - 1u) * raws;
  //for r in ROWS
  var a$p_$r = 0.0;
  var b$p_$r = 0.0;
  //end
  //end
  for (var i = lane; i < raws; i += LANES) {
    //for p in PAIRS
    let raw_a$p = load_raw(at$p + i);
    let raw_b$p = load_raw(at$p + half * raws + i);
    //end
    //for c in CHUNKS
    {
      let k = (i - lane) * $CHUNKSu + $cu * LANES + lane;
      //for p in PAIRS
      let wa$p = eight_$c(raw_a$p);
      let wb$p = eight_$c(raw_b$p);
      //end
      //for r in ROWS
      {
        let at = ((row + $ru) * (COLS / 8u) + k) * 2u;
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

  //for p in PAIRS
  //for r in ROWS
  partial[thread * SUMS + $pu * $ROWSu + $ru] = vec2<f32>(a$p_$r, b$p_$r);
  //end
  //end
  // Its own sums only, so no barrier; a loop, because `finish` may be long and software compiles slowly.
  if (LANES == 1u) {
    for (var i = 0u; i < SUMS; i++) {
      let c = pair + i / $ROWSu;
      if (c < half) {
        finish(row + i % $ROWSu, c, half, partial[thread * SUMS + i]);
      }
    }
    return;
  }
  workgroupBarrier();
  for (var i = thread; i < GROUPS * SUMS; i += LANES * GROUPS) {
    let group = i / SUMS;
    var sum = vec2<f32>(0.0);
    for (var l = 0u; l < LANES; l++) {
      sum += partial[(group * LANES + l) * SUMS + i % SUMS];
    }
    let c = (tile.x * GROUPS + group) * $PAIRSu + i % SUMS / $ROWSu;
    if (c < half) {
      finish(row + i % $ROWSu, c, half, sum);
    }
  }
}
