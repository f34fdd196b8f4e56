// Adds runs that are segments, BLOCK of them at a time. What a run is multiplied with is the same for all
// elements: the workgroup finds it once.

//use latent/latent_lanes

const BLOCK = 64u; // segments, at most THREADS

var<workgroup> segment_stats: array<vec2<f32>, BLOCK>; // peak, total; then shrink, share

fn add_runs(query: u32, row: Row, first: u32, thread: u32) {
  let range = segments_of(row);
  var peak = NEGATIVE; // of lane `thread`
  var total = 0.0;
  //for t in TURNS
  let lane$t = min((thread + $tu * THREADS) / QUADS, LANES - 1u);
  let quad$t = min(first + (thread + $tu * THREADS) % QUADS, RANK4 - 1u);
  var sum$t = vec4<f32>(0.0);
  //end
  for (var block = range.x; block < range.y; block += BLOCK) {
    let there = min(BLOCK, range.y - block);
    workgroupBarrier(); // what is read of the block before
    if (thread < BLOCK) {
      let stat = stats[query * RUNS + block + min(thread, there - 1u)];
      segment_stats[thread] = select(vec2<f32>(1.0, 0.0), stat, thread < there);
    }
    workgroupBarrier();
    if (thread < LANES) {
      for (var s = thread; s < there; s += LANES) {
        let own = segment_stats[s];
        let fold = fold_one(peak, own.x);
        peak = fold.z;
        total = fma(own.y, fold.y, total * fold.x);
        segment_stats[s] = fold.xy;
      }
      lane_stats[thread] = vec2<f32>(peak, total);
    }
    workgroupBarrier();
    for (var s = 0u; s < there; s += LANES * $RUNS_AHEADu) {
      //for t in TURNS
      //for a in RUNS_AHEAD
      let part$t_$a = sums[
        (query * RUNS + block + min(s + lane$t + $au * LANES, there - 1u)) * RANK4 + quad$t
      ];
      //end
      //end
      //for t in TURNS
      //for a in RUNS_AHEAD
      {
        let share = segment_stats[s + lane$t + $au * LANES];
        sum$t = fma(part$t_$a, vec4<f32>(share.y), sum$t * share.x);
      }
      //end
      //end
    }
  }
  weigh_lanes(thread);
  //for t in TURNS
  if (thread + $tu * THREADS < LANES * QUADS) {
    lane_sums[lane$t][(thread + $tu * THREADS) % QUADS] = sum$t;
  }
  //end
  workgroupBarrier();
}
