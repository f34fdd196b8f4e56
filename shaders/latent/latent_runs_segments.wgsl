// Adds runs that are segments, BLOCK of them at a time. What a run is multiplied with is the same for all
// elements: the workgroup finds it once.

//use latent/latent_lanes

const BLOCK = 64u; // segments, at most the invocations of a workgroup

var<workgroup> segment_stats: array<vec2<f32>, BLOCK>; // peak, total; then shrink, share
var<workgroup> lane_stats: array<vec2<f32>, LANES>; // peak, total

// Four elements of the weighted sum of latents, zeros for padding: for all invocations of a workgroup,
// `threads` of them, at least BLOCK.
fn combined(query: u32, row: Row, quad: u32, thread: u32, threads: u32) -> vec4<f32> {
  let range = segments_of(row);
  if (visible_end(row) == 0u) {
    return vec4<f32>(0.0);
  }
  var peak = NEGATIVE; // of lane `thread`
  var total = 0.0;
  //for l in LANES
  var sum$l = vec4<f32>(0.0);
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
    for (var s = 0u; s < there; s += LANES * $AHEADu) {
      //for a in AHEAD
      //for l in LANES
      let part$a_$l = sums[
        (query * RUNS + block + min(s + $(a * LANES + l)u, there - 1u)) * RANK4 + quad
      ];
      //end
      //end
      //for a in AHEAD
      //for l in LANES
      {
        let share = segment_stats[s + $(a * LANES + l)u];
        sum$l = fma(part$a_$l, vec4<f32>(share.y), sum$l * share.x);
      }
      //end
      //end
    }
  }
  var top = NEGATIVE;
  var whole_total = 0.0;
  var sum = vec4<f32>(0.0);
  //for l in LANES
  {
    let fold = fold_one(top, lane_stats[$l].x);
    top = fold.z;
    whole_total = fma(lane_stats[$l].y, fold.y, whole_total * fold.x);
    sum = fma(sum$l, vec4<f32>(fold.y), sum * fold.x);
  }
  //end
  return sum / whole_total;
}
