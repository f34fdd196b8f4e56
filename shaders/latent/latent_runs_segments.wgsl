// Adds runs that are segments, BLOCK of them at a time. What a run is multiplied with is the same for all
// elements: the workgroup finds it once, that of all runs side by side.

//use latent/latent_lanes

const BLOCK = 64u; // segments, at most THREADS

var<workgroup> segment_stats: array<vec2<f32>, BLOCK>; // peak, total
var<workgroup> segment_folds: array<vec2<f32>, BLOCK>; // shrink, share

fn add_runs(query: u32, row: Row, first: u32, thread: u32) {
  let range = segments_of(row);
  var before = NEGATIVE; // peak of the blocks before, of lane `thread % LANES`
  var total = 0.0; // of lane `thread`
  //for t in TURNS
  let lane$t = min((thread + $tu * THREADS) / QUADS, LANES - 1u);
  let quad$t = min(first + (thread + $tu * THREADS) % QUADS, RANK4 - 1u);
  var sum$t = vec4<f32>(0.0);
  //end
  for (var block = range.x; block < range.y; block += BLOCK) {
    let there = min(BLOCK, range.y - block);
    // Asked for before runs are weighed: the waits are shared.
    //for t in TURNS
    //for a in RUNS_AHEAD
    var part$t_$a = sums[
      (query * RUNS + block + min(lane$t + $au * LANES, there - 1u)) * RANK4 + quad$t
    ];
    //end
    //end
    workgroupBarrier(); // what is read of the block before
    if (thread < BLOCK) {
      segment_stats[thread] = stats[query * RUNS + block + min(thread, there - 1u)];
    }
    workgroupBarrier();
    if (thread < BLOCK) {
      // A run is weighed by the largest peak before it in its lane.
      var peak = before;
      for (var s = thread % LANES; s < there; s += LANES) {
        let own = segment_stats[s].x;
        peak = select(peak, max(peak, own), s < thread);
        before = max(before, own);
      }
      let fold = fold_one(peak, segment_stats[thread].x).xy;
      segment_folds[thread] = select(vec2<f32>(1.0, 0.0), fold, thread < there);
    }
    workgroupBarrier();
    if (thread < LANES) {
      for (var s = thread; s < there; s += LANES) {
        let fold = segment_folds[s];
        total = fma(segment_stats[s].y, fold.y, total * fold.x);
      }
      lane_stats[thread] = vec2<f32>(before, total);
    }
    for (var s = 0u; s < there; s += LANES * $RUNS_AHEADu) {
      let next = s + LANES * $RUNS_AHEADu;
      //for t in TURNS
      //for a in RUNS_AHEAD
      {
        let share = segment_folds[s + lane$t + $au * LANES];
        sum$t = fma(part$t_$a, vec4<f32>(share.y), sum$t * share.x);
      }
      part$t_$a = sums[
        (query * RUNS + block + min(next + lane$t + $au * LANES, there - 1u)) * RANK4 + quad$t
      ];
      //end
      //end
    }
  }
  workgroupBarrier();
  weigh_lanes(thread);
  //for t in TURNS
  if (thread + $tu * THREADS < LANES * QUADS) {
    lane_sums[lane$t][(thread + $tu * THREADS) % QUADS] = sum$t;
  }
  //end
  workgroupBarrier();
}
