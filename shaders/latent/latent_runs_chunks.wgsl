// Adds runs that are chunks, SHARES of a segment one after the other. What a run is multiplied with is the
// same for all elements: the workgroup finds it once. The first sums are asked for before that.

//use latent/latent_lanes

const SHARES = $SHARESu; // chunks of a segment
const MOST_SEGMENTS = $MOST_SEGMENTSu; // at most THREADS

var<workgroup> chunk_stats: array<vec2<f32>, MOST_SEGMENTS * SHARES>; // peak, total; then shrink, share
var<workgroup> segment_stats: array<vec2<f32>, MOST_SEGMENTS>; // the same

fn weigh(query: u32, row: Row, thread: u32) {
  let range = segments_of(row);
  let begin = visible_begin(row) / CHUNK;
  let end = (visible_end(row) + CHUNK - 1u) / CHUNK;
  for (var c = thread; range.x * SHARES + c < range.y * SHARES; c += THREADS) {
    let chunk = range.x * SHARES + c;
    let stat = stats[query * RUNS + clamp(chunk, begin, end - 1u)];
    chunk_stats[c] = select(vec2<f32>(NEGATIVE, 0.0), stat, chunk >= begin && chunk < end);
  }
  workgroupBarrier();
  if (range.x + thread < range.y) {
    var peak = NEGATIVE;
    var total = 0.0;
    for (var j = 0u; j < SHARES; j++) {
      let own = chunk_stats[thread * SHARES + j];
      let fold = fold_one(peak, own.x);
      peak = fold.z;
      total = fma(own.y, fold.y, total * fold.x);
      chunk_stats[thread * SHARES + j] = fold.xy;
    }
    segment_stats[thread] = vec2<f32>(peak, total);
  }
  workgroupBarrier();
  if (thread < LANES) {
    var peak = NEGATIVE;
    var total = 0.0;
    for (var s = thread; range.x + s < range.y; s += LANES) {
      let own = segment_stats[s];
      let fold = fold_one(peak, own.x);
      peak = fold.z;
      total = fma(own.y, fold.y, total * fold.x);
      segment_stats[s] = fold.xy;
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
  //for j in SHARES
  var part$t_$j = sums[
    (query * RUNS + clamp((range.x + lane$t) * SHARES + $ju, begin, end - 1u)) * RANK4 + quad$t
  ];
  //end
  //end
  weigh(query, row, thread);
  //for t in TURNS
  {
    var sum = vec4<f32>(0.0);
    for (var s = lane$t; range.x + s < range.y; s += LANES) {
      var own = vec4<f32>(0.0);
      //for j in SHARES
      {
        let share = chunk_stats[s * SHARES + $ju];
        own = fma(part$t_$j, vec4<f32>(share.y), own * share.x);
      }
      //end
      let share = segment_stats[s];
      sum = fma(own, vec4<f32>(share.y), sum * share.x);
      let next = range.x + s + LANES;
      if (next < range.y) {
        //for j in SHARES
        part$t_$j = sums[
          (query * RUNS + clamp(next * SHARES + $ju, begin, end - 1u)) * RANK4 + quad$t
        ];
        //end
      }
    }
    if (thread + $tu * THREADS < LANES * QUADS) {
      lane_sums[thread + $tu * THREADS] = sum;
    }
  }
  //end
  workgroupBarrier();
}
