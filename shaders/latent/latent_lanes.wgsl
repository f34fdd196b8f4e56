// How the segments of 128 cells that a row sees are added, see latent_attention.wgsl: each of LANES sums
// has every LANES-th segment, and these are added in order. A workgroup adds QUADS fours of a latent of one
// query; an invocation has TURNS pairs of a lane and a four.
//
// latent_runs_*.wgsl declare `fn add_runs(query, row, first, thread)`, after which `lane_sums`, `lane_stats` and
// `lane_folds` are there for the fours from `first` on, if the row sees a cell.

//use fragments/rows
//use attention/visible
//use latent/latent_fold

override RUNS: u32; // places for runs of a query in `sums`
override FIRST_ROW: u32; // of `rows`

const SEGMENT = 128u; // cells
const CHUNK = 16u; // cells
const RANK4 = $RANK4u; // vec4 of a latent
const LANES = $LANESu;
const QUADS = $QUADSu;
const THREADS = $THREADSu; // of a workgroup

@group(0) @binding(1) var<storage, read> sums: array<vec4<f32>>; // [rows, HEADS, RUNS, RANK4]
@group(0) @binding(3) var<storage, read> stats: array<vec2<f32>>; // [rows, HEADS, RUNS]: peak, total
@group(0) @binding(4) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]

var<workgroup> lane_stats: array<vec2<f32>, LANES>; // peak, total
var<workgroup> lane_folds: array<vec2<f32>, LANES>; // shrink, share
var<workgroup> lane_sums: array<array<vec4<f32>, QUADS>, LANES>;

// Segments that a row sees: the first, and one past the last.
fn segments_of(row: Row) -> vec2<u32> {
  return vec2<u32>(visible_begin(row) / SEGMENT, (visible_end(row) + SEGMENT - 1u) / SEGMENT);
}

// What lanes are multiplied with, of their stats, which all invocations know.
fn weigh_lanes(thread: u32) {
  if (thread < LANES) {
    var top = NEGATIVE;
    for (var l = 0u; l < thread; l++) {
      top = max(top, lane_stats[l].x);
    }
    lane_folds[thread] = fold_one(top, lane_stats[thread].x).xy;
  }
}

// Four elements of the weighted sum of latents: of the `quad`th four of the workgroup.
fn weighted(quad: u32) -> vec4<f32> {
  var total = 0.0;
  var sum = vec4<f32>(0.0);
  //for l in LANES
  {
    let fold = lane_folds[$l];
    total = fma(lane_stats[$l].y, fold.y, total * fold.x);
    sum = fma(lane_sums[$l][quad], vec4<f32>(fold.y), sum * fold.x);
  }
  //end
  return sum / total;
}
