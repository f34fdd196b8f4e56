// Adds runs that are chunks, SHARES of a segment one after the other. What a run is multiplied with is the
// same for all elements: the workgroup finds it once. The first sums, and all peaks and totals, are asked for before the
// row is known: what it does not see of them counts as nothing.

//use latent/latent_lanes

const SHARES = $SHARESu; // chunks of a segment
const MOST_SEGMENTS = $MOST_SEGMENTSu;
const MOST_CHUNKS = MOST_SEGMENTS * SHARES;

var<workgroup> chunk_stats: array<array<vec2<f32>, SHARES>, MOST_SEGMENTS>; // peak, total
var<workgroup> chunk_folds: array<array<vec2<f32>, SHARES>, MOST_SEGMENTS>; // shrink, share
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
    chunk_stats[chunk$c / SHARES][chunk$c % SHARES] = select(vec2<f32>(NEGATIVE, 0.0), stat$c, seen);
  }
  //end
  workgroupBarrier();
  // A part is weighed by the largest peak before it.
  //for c in CHUNK_TURNS
  if (chunk$c < MOST_CHUNKS) {
    let s = chunk$c / SHARES;
    let own = chunk$c % SHARES;
    var peak = NEGATIVE;
    //for j in SHARES
    peak = max(peak, select(NEGATIVE, chunk_stats[s][$j].x, $ju < own));
    //end
    chunk_folds[s][own] = fold_one(peak, chunk_stats[s][own].x).xy;
  }
  //end
  workgroupBarrier();
  if (thread < LANES) {
    var peak = NEGATIVE;
    var total = 0.0;
    for (var s = range.x + thread; s < range.y; s += LANES) {
      var own = vec2<f32>(NEGATIVE, 0.0);
      //for j in SHARES
      {
        let stat = chunk_stats[s][$j];
        let fold = chunk_folds[s][$j];
        own = vec2<f32>(max(own.x, stat.x), fma(stat.y, fold.y, own.y * fold.x));
      }
      //end
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
  let begin$t = query * RUNS * RANK4 + quad$t;
  //for j in SHARES
  var part$t_$j = sums[begin$t + min((range.x + lane$t) * SHARES + $ju, RUNS - 1u) * RANK4];
  //end
  //end
  weigh(query, row, thread);
  weigh_lanes(thread);
  //for t in TURNS
  {
    var sum = vec4<f32>(0.0);
    for (var s = range.x + lane$t; s < range.y; s += LANES) {
      var own = vec4<f32>(0.0);
      //for j in SHARES
      {
        let chunk = s * SHARES + $ju;
        // What was left of others may be no number.
        if (chunk >= begin && chunk < end) {
          let fold = chunk_folds[s][$j];
          own = fma(part$t_$j, vec4<f32>(fold.y), own * fold.x);
        }
      }
      //end
      let fold = segment_folds[s];
      sum = fma(own, vec4<f32>(fold.y), sum * fold.x);
      if (s + LANES < range.y) {
        //for j in SHARES
        part$t_$j = sums[begin$t + min((s + LANES) * SHARES + $ju, RUNS - 1u) * RANK4];
        //end
      }
    }
    if (thread + $tu * THREADS < LANES * QUADS) {
      lane_sums[lane$t][(thread + $tu * THREADS) % QUADS] = sum;
    }
  }
  //end
  workgroupBarrier();
}
