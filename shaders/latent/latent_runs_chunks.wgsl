// Adds runs that are chunks, $SHARES of a segment one after the other. What a run is multiplied with is
// the same for all elements: the workgroup finds it once.

//use latent/latent_lanes

const MOST_SEGMENTS = $MOST_SEGMENTSu;

var<workgroup> chunk_shares: array<vec2<f32>, MOST_SEGMENTS * $SHARESu>; // shrink, share
var<workgroup> segment_stats: array<vec2<f32>, MOST_SEGMENTS>; // peak, total
var<workgroup> segment_shares: array<vec2<f32>, MOST_SEGMENTS>;
var<workgroup> lane_stats: array<vec2<f32>, LANES>;

// For all invocations of a workgroup, before `combined`; they are at least MOST_SEGMENTS.
fn weigh(query: u32, row: Row, thread: u32) {
  let range = segments_of(row);
  let begin = visible_begin(row) / CHUNK;
  let end = (visible_end(row) + CHUNK - 1u) / CHUNK;
  if (range.x + thread < range.y) {
    let first = (range.x + thread) * $SHARESu;
    //for j in SHARES
    let stat$j = stats[query * RUNS + clamp(first + $ju, begin, end - 1u)];
    //end
    var peak = NEGATIVE;
    var total = 0.0;
    //for j in SHARES
    {
      let seen = first + $ju >= begin && first + $ju < end;
      let fold = fold_one(peak, select(NEGATIVE, stat$j.x, seen));
      peak = fold.z;
      total = fma(stat$j.y, fold.y, total * fold.x);
      chunk_shares[thread * $SHARESu + $ju] = fold.xy;
    }
    //end
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
      segment_shares[s] = fold.xy;
    }
    lane_stats[thread] = vec2<f32>(peak, total);
  }
  workgroupBarrier();
}

// Four elements of the weighted sum of latents; zeros for padding.
fn combined(query: u32, row: Row, quad: u32) -> vec4<f32> {
  let range = segments_of(row);
  let begin = visible_begin(row) / CHUNK;
  let end = (visible_end(row) + CHUNK - 1u) / CHUNK;
  if (end == 0u) {
    return vec4<f32>(0.0);
  }
  //for l in LANES
  var sum$l = vec4<f32>(0.0);
  //end
  for (var s = range.x; s < range.y; s += LANES) {
    //for l in LANES
    //for j in SHARES
    let part$l_$j = sums[
      (query * RUNS + clamp((s + $lu) * $SHARESu + $ju, begin, end - 1u)) * RANK4 + quad
    ];
    //end
    //end
    //for l in LANES
    if (s + $lu < range.y) {
      let at = s + $lu - range.x;
      var own = vec4<f32>(0.0);
      //for j in SHARES
      {
        let share = chunk_shares[at * $SHARESu + $ju];
        own = fma(part$l_$j, vec4<f32>(share.y), own * share.x);
      }
      //end
      let share = segment_shares[at];
      sum$l = fma(own, vec4<f32>(share.y), sum$l * share.x);
    }
    //end
  }
  var top = NEGATIVE;
  var total = 0.0;
  var sum = vec4<f32>(0.0);
  //for l in LANES
  {
    let fold = fold_one(top, lane_stats[$l].x);
    top = fold.z;
    total = fma(lane_stats[$l].y, fold.y, total * fold.x);
    sum = fma(sum$l, vec4<f32>(fold.y), sum * fold.x);
  }
  //end
  return sum / total;
}
