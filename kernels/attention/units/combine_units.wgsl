// out[r, h] = sum / total of the splits of keys that row r sees, merged as attention_units.wgsl does; zeros for
// padding. A partial sum is of $EACH_CELLS cells of keys; those of 1,024 cells (a segment) are merged in order,
// and then the segments in order.
//
// One workgroup per (head, row): $LANES lanes take a segment each at a time, with $HEAD invocations, one for each four
// of the head. Partial sums are loaded $PREFETCH at a time.

//#import lib/reduce_scale
//#import lib/rows
//#import lib/visible
//#import lib/powers_of_two

override HEADS: u32;
override KEPT: u32; // partial sums of a query
override FIRST_ROW: u32; // of `rows`

const EACH_CELLS = $EACH_CELLSu; // of a partial sum
const SEGMENT = $SEGMENTu; // partial sums of a segment
const HEAD = $HEADu; // vec4 of a head
const LANES = $LANESu;
const NEGATIVE = -3.0e38; // below every peak

@group(0) @binding(0) var<storage, read> sums: array<vec4<f32>>; // [rows, HEADS, KEPT, HEAD]
@group(0) @binding(1) var<storage, read> stats: array<vec2<f32>>; // [rows, HEADS, KEPT]: peak, base 2, and total
@group(0) @binding(2) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]
@group(0) @binding(3) var<storage, read_write> out: array<vec4<f32>>; // [rows, HEADS, HEAD]
//#if SINKS
@group(0) @binding(13) var<storage, read> sinks: array<f32>; // [HEADS]: a logit without a value
//#endif

struct Part {
  peak: f32, // base 2
  total: f32,
  sum: vec4<f32>,
}

var<workgroup> lane_stats: array<vec2<f32>, LANES>;
var<workgroup> lane_sums: array<vec4<f32>, LANES * HEAD>;

fn merged(a: Part, b: Part) -> Part {
  let peak = max(a.peak, b.peak);
  let kept = power(a.peak - peak);
  let taken = power(b.peak - peak);
  return Part(peak, fma(a.total, kept, b.total * taken), fma(a.sum, vec4(kept), b.sum * taken));
}

@compute @workgroup_size(LANES * HEAD)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let row = rows[FIRST_ROW + tile.y];
  let begin = visible_begin(row) / EACH_CELLS;
  let end = min((visible_end(row) + EACH_CELLS - 1u) / EACH_CELLS, KEPT);
  let query = tile.y * HEADS + tile.x;
  let lane = thread / HEAD;
  let quad = thread % HEAD;
  if (end == 0u) {
    if (lane == 0u) {
      out[query * HEAD + quad] = vec4<f32>();
    }
    return;
  }

  var all = Part(NEGATIVE, 0.0, vec4<f32>());
  for (var segment = begin / SEGMENT; segment * SEGMENT < end; segment += LANES) {
    let start = max((segment + lane) * SEGMENT, begin);
    let stop = min((segment + lane + 1u) * SEGMENT, end);
    var own = Part(NEGATIVE, 0.0, vec4<f32>());
    for (var c = start; c < stop; c += $PREFETCHu) {
      //#for s in PREFETCH
      let at$s = query * KEPT + min(c + $su, stop - 1u);
      let stat$s = stats[at$s];
      let sum$s = sums[at$s * HEAD + quad];
      //#endfor
      //#for s in PREFETCH
      if (c + $su < stop) {
        own = merged(own, Part(stat$s.x, stat$s.y, sum$s));
      }
      //#endfor
    }
    if (quad == 0u) {
      lane_stats[lane] = vec2(own.peak, own.total);
    }
    lane_sums[thread] = own.sum;
    workgroupBarrier();
    if (lane == 0u) {
      //#for l in LANES
      if ((segment + $lu) * SEGMENT < end) {
        all = merged(all, Part(lane_stats[$l].x, lane_stats[$l].y, lane_sums[$lu * HEAD + thread]));
      }
      //#endfor
    }
    workgroupBarrier();
  }
  if (lane == 0u) {
    //#if SINKS
    all.total += exp2(min(1.4426950408889634 * sinks[tile.x] - all.peak, 120.0));
    //#endif
    let y = all.sum / all.total;
    out[query * HEAD + quad] = y;
    reduce_scale(tile.y, y);
  }
}
