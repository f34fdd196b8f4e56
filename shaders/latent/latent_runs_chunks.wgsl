// Adds runs that are chunks, SHARES of a segment one after the other. What a run is multiplied with is the
// same for all elements: the workgroup finds it once. Loops stay loops: instructions that run once are
// waited for longer than the sums.

//use latent/latent_lanes

const SHARES = $SHARESu; // chunks of a segment
const MOST_SEGMENTS = $MOST_SEGMENTSu;

var<workgroup> chunk_stats: array<vec2<f32>, MOST_SEGMENTS * SHARES>; // peak, total; then shrink, share
var<workgroup> segment_stats: array<vec2<f32>, MOST_SEGMENTS>; // the same
var<workgroup> lane_stats: array<vec2<f32>, LANES>; // peak, total

fn weigh(query: u32, row: Row, thread: u32, threads: u32) {
  let range = segments_of(row);
  let begin = visible_begin(row) / CHUNK;
  let end = (visible_end(row) + CHUNK - 1u) / CHUNK;
  workgroupBarrier(); // what is read of the elements before
  for (var c = thread; range.x * SHARES + c < range.y * SHARES; c += threads) {
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

// Four elements of the weighted sum of latents, zeros for padding: for all invocations of a workgroup,
// `threads` of them, at least MOST_SEGMENTS.
fn combined(query: u32, row: Row, quad: u32, thread: u32, threads: u32) -> vec4<f32> {
  let range = segments_of(row);
  let begin = visible_begin(row) / CHUNK;
  let end = (visible_end(row) + CHUNK - 1u) / CHUNK;
  if (end == 0u) {
    return vec4<f32>(0.0);
  }
  weigh(query, row, thread, threads);
  var top = NEGATIVE;
  var total = 0.0;
  var sum = vec4<f32>(0.0);
  for (var l = 0u; l < LANES; l++) {
    var lane = vec4<f32>(0.0);
    for (var s = l; range.x + s < range.y; s += LANES) {
      let first = (range.x + s) * SHARES;
      //for j in SHARES
      let part$j = sums[(query * RUNS + clamp(first + $ju, begin, end - 1u)) * RANK4 + quad];
      //end
      var own = vec4<f32>(0.0);
      //for j in SHARES
      let share$j = chunk_stats[s * SHARES + $ju];
      own = fma(part$j, vec4<f32>(share$j.y), own * share$j.x);
      //end
      let share = segment_stats[s];
      lane = fma(own, vec4<f32>(share.y), lane * share.x);
    }
    let fold = fold_one(top, lane_stats[l].x);
    top = fold.z;
    total = fma(lane_stats[l].y, fold.y, total * fold.x);
    sum = fma(lane, vec4<f32>(fold.y), sum * fold.x);
  }
  return sum / total;
}
