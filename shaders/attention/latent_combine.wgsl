// out[r, h] = sums / totals over the runs of cells that row r sees, see latent_attention.wgsl; zeros
// for padding.
//
// One workgroup per ($QUADS fours of a latent, head, row). The runs of a segment of 128 cells, $RUNS of
// them, are added one after the other; lane l adds segments l, l + LANES, ..., and the lanes are
// added in order of l.

//use fragments/rows
//use attention/visible
//use attention/latent_fold

override HEADS: u32;
override RUNS: u32; // places for runs of a query in `sums`
override FIRST_ROW: u32; // of `rows`

const SEGMENT = 128u; // cells
const RUN = SEGMENT / $RUNSu;
const RANK4 = $RANK4u; // vec4 of a latent
const OUT4 = $OUT4u; // vec4 of a row of `out`, of which the first RANK4 are written
const QUADS = $QUADSu; // of a workgroup
const LANES = $LANESu;

@group(0) @binding(0) var<storage, read> sums: array<vec4<f32>>; // [rows, HEADS, RUNS, RANK4]
@group(0) @binding(1) var<storage, read> stats: array<vec2<f32>>; // [rows, HEADS, RUNS]: peak, total
@group(0) @binding(2) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]
@group(0) @binding(3) var<storage, read_write> out: array<vec4<f32>>; // [rows, HEADS, OUT4]

var<workgroup> lane_stats: array<vec2<f32>, LANES>;
var<workgroup> lane_sums: array<vec4<f32>, LANES * QUADS>;

@compute @workgroup_size(LANES * QUADS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let row = rows[FIRST_ROW + tile.z];
  let query = tile.z * HEADS + tile.y;
  let lane = thread / QUADS;
  let quad = tile.x * QUADS + thread % QUADS;
  let begin = visible_begin(row) / RUN;
  let end = (visible_end(row) + RUN - 1u) / RUN;
  if (end == 0u) {
    if (lane == 0u && quad < RANK4) {
      out[query * OUT4 + quad] = vec4<f32>(0.0);
    }
    return;
  }

  var peak = vec4<f32>(NEGATIVE); // all alike
  var total = 0.0;
  var sum = vec4<f32>(0.0);
  for (var s = begin / $RUNSu + lane; s * $RUNSu < end; s += LANES * $AHEADu) {
    //for a in AHEAD
    let at$a_first = (s + $au * LANES) * $RUNSu;
    //for j in RUNS
    let at$a_$j = query * RUNS + min(at$a_first + $ju, end - 1u);
    let stat$a_$j = stats[at$a_$j];
    let sum$a_$j = sums[at$a_$j * RANK4 + min(quad, RANK4 - 1u)];
    //end
    //end
    //for a in AHEAD
    {
      var own_peak = vec4<f32>(NEGATIVE);
      var own_total = 0.0;
      var own = vec4<f32>(0.0);
      //for j in RUNS
      if (at$a_first + $ju >= begin && at$a_first + $ju < end) {
        let fold = fold_of(own_peak, vec4<f32>(stat$a_$j.x));
        own_peak = fold.peak;
        own_total = fma(stat$a_$j.y, fold.share.x, own_total * fold.shrink.x);
        own = fma(sum$a_$j, fold.share, own * fold.shrink);
      }
      //end
      let fold = fold_of(peak, own_peak);
      peak = fold.peak;
      total = fma(own_total, fold.share.x, total * fold.shrink.x);
      sum = fma(own, fold.share, sum * fold.shrink);
    }
    //end
  }

  if (thread % QUADS == 0u) {
    lane_stats[lane] = vec2<f32>(peak.x, total);
  }
  lane_sums[thread] = sum;
  workgroupBarrier();
  if (lane > 0u || quad >= RANK4) {
    return;
  }
  var top = vec4<f32>(NEGATIVE);
  total = 0.0;
  sum = vec4<f32>(0.0);
  //for l in LANES
  {
    let fold = fold_of(top, vec4<f32>(lane_stats[$l].x));
    top = fold.peak;
    total = fma(lane_stats[$l].y, fold.share.x, total * fold.shrink.x);
    sum = fma(lane_sums[$lu * QUADS + thread], fold.share, sum * fold.shrink);
  }
  //end
  out[query * OUT4 + quad] = sum / total;
}
