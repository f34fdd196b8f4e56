// Adds runs that are chunks, SHARES of a segment one after the other. What a run is multiplied with is the
// same for all elements: the workgroup finds it once. The first sums, and all peaks and totals, are asked for before the
// row is known: what it does not see of them counts as nothing.

//use latent/latent_lanes

const SHARES = $SHARESu; // chunks of a segment
const MOST_SEGMENTS = $MOST_SEGMENTSu; // at most THREADS
const MOST_CHUNKS = MOST_SEGMENTS * SHARES;

var<workgroup> chunk_stats: array<vec2<f32>, MOST_CHUNKS>; // peak, total
var<workgroup> chunk_folds: array<vec2<f32>, MOST_CHUNKS>; // shrink, share
var<workgroup> segment_stats: array<vec2<f32>, MOST_SEGMENTS>; // peak, total
var<workgroup> segment_folds: array<vec2<f32>, MOST_SEGMENTS>; // shrink, share

fn weigh(query: u32, row: Row, thread: u32) {
  //for c in CHUNK_TURNS
  let chunk$c = thread + $cu * THREADS;
  let stat$c = stats[query * RUNS + min(chunk$c, RUNS - 1u)];
  //end
  let range = segments_of(row);
  let begin = visible_begin(row) / CHUNK;
  let end = (visible_end(row) + CHUNK - 1u) / CHUNK;
  //for c in CHUNK_TURNS
  if (chunk$c < MOST_CHUNKS) {
    let seen = chunk$c >= begin && chunk$c < end;
    chunk_stats[chunk$c] = select(vec2<f32>(NEGATIVE, 0.0), stat$c, seen);
  }
  //end
  workgroupBarrier();
  // A part is weighed by the largest peak before it.
  for (var chunk = thread; chunk < min(range.y * SHARES, MOST_CHUNKS); chunk += THREADS) {
    var peak = NEGATIVE;
    for (var before = chunk / SHARES * SHARES; before < chunk; before++) {
      peak = max(peak, chunk_stats[before].x);
    }
    chunk_folds[chunk] = fold_one(peak, chunk_stats[chunk].x).xy;
  }
  workgroupBarrier();
  if (thread >= range.x && thread < range.y) {
    var peak = NEGATIVE;
    var total = 0.0;
    for (var chunk = thread * SHARES; chunk < (thread + 1u) * SHARES; chunk++) {
      let fold = chunk_folds[chunk];
      peak = max(peak, chunk_stats[chunk].x);
      total = fma(chunk_stats[chunk].y, fold.y, total * fold.x);
    }
    segment_stats[thread] = vec2<f32>(peak, total);
  }
  workgroupBarrier();
  if (thread < LANES) {
    var peak = NEGATIVE;
    var total = 0.0;
    for (var s = range.x + thread; s < range.y; s += LANES) {
      let own = segment_stats[s];
      let fold = fold_one(peak, own.x);
      peak = fold.z;
      total = fma(own.y, fold.y, total * fold.x);
      segment_folds[s] = fold.xy;
    }
    lane_stats[thread] = vec2<f32>(peak, total);
  }
  workgroupBarrier();
}

fn add_runs(query: u32, row: Row, first: u32, thread: u32) {
  let range = segments_of(row);
  let begin = visible_begin(row) / CHUNK;
  let end = (visible_end(row) + CHUNK - 1u) / CHUNK;
  //for t in TURNS
  let lane$t = min((thread + $tu * THREADS) / QUADS, LANES - 1u);
  let quad$t = min(first + (thread + $tu * THREADS) % QUADS, RANK4 - 1u);
  var sum$t = vec4<f32>(0.0);
  //end
  for (var s = range.x; s == range.x || s < range.y; s += LANES) {
    //for t in TURNS
    let chunk$t = (s + lane$t) * SHARES;
    //for j in SHARES
    let part$t_$j = sums[(query * RUNS + min(chunk$t + $ju, RUNS - 1u)) * RANK4 + quad$t];
    //end
    //end
    if (s == range.x) {
      weigh(query, row, thread);
    }
    //for t in TURNS
    if (s + lane$t < range.y) {
      var own = vec4<f32>(0.0);
      //for j in SHARES
      {
        let fold = chunk_folds[chunk$t + $ju];
        let seen = chunk$t + $ju >= begin && chunk$t + $ju < end; // others may be no numbers
        own = fma(select(vec4<f32>(0.0), part$t_$j, seen), vec4<f32>(fold.y), own * fold.x);
      }
      //end
      let fold = segment_folds[s + lane$t];
      sum$t = fma(own, vec4<f32>(fold.y), sum$t * fold.x);
    }
    //end
  }
  weigh_lanes(thread);
  //for t in TURNS
  if (thread + $tu * THREADS < LANES * QUADS) {
    lane_sums[thread + $tu * THREADS] = sum$t;
  }
  //end
  workgroupBarrier();
}
