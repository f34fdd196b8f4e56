// out[r, h] = sum_c exp(peak_c - peak) sum_c / sum_c exp(peak_c - peak) total_c over the splits c of
// keys that row r sees; zeros for padding. With `gating` out is gated, see lib/output_gate.wgsl.
//
// One workgroup per (head, row, $QUADS fours of the head): lane l merges every $LANES-th split from the l-th that the
// row sees with a softmax of its own (Milakov & Gimelshein 2018), $PREFETCH of them loaded at once; the lanes are
// merged in order of l. Long contexts have few rows but many splits, hence many lanes and workgroups.

//#import lib/reduce_scale
//#import lib/rows
//#import lib/visible

override HEADS: u32;
override KV_SPLITS: u32; // partial sums of a query: of split c number c % KV_SPLITS
override FIRST_ROW: u32; // of `rows`

const SPLIT_CELLS = 64u;
const HEAD = $HEADu; // vec4 of a head
const QUADS = $QUADSu; // of a workgroup
const LANES = $LANESu;
const NEGATIVE = -3.0e38; // below every score; minus infinity would make NaN of inf - inf

@group(0) @binding(0) var<storage, read> sums: array<vec4<f32>>; // [rows, HEADS, KV_SPLITS, HEAD]
@group(0) @binding(1) var<storage, read> stats: array<vec2<f32>>; // [rows, HEADS, KV_SPLITS]: peak, total
@group(0) @binding(2) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]
@group(0) @binding(3) var<storage, read_write> out: array<vec4<f32>>; // [rows, HEADS, HEAD]
//#if SINKS
@group(0) @binding(13) var<storage, read> sinks: array<f32>; // [HEADS]: a logit without a value
//#endif
//#if gating != none
//#import lib/output_gate
//#endif

var<workgroup> lane_stats: array<vec2<f32>, LANES>;
var<workgroup> lane_sums: array<vec4<f32>, LANES * QUADS>;

@compute @workgroup_size(LANES * QUADS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let row = rows[FIRST_ROW + tile.y];
  let seen = (visible_end(row) + SPLIT_CELLS - 1u) / SPLIT_CELLS;
  let splits = select(seen, min(seen, KV_SPLITS), WINDOW == 0xffffffffu);
  let first = visible_begin(row) / SPLIT_CELLS;
  let query = tile.y * HEADS + tile.x;
  let lane = thread / QUADS;
  let quad = tile.z * QUADS + thread % QUADS;
  if (splits == 0u) {
    if (lane == 0u) {
      out[query * HEAD + quad] = vec4<f32>(0.0);
    }
    return;
  }

  var peak = NEGATIVE;
  var total = 0.0;
  var sum = vec4<f32>(0.0);
  if (splits - first <= LANES) { // a split a lane
    if (first + lane < splits) {
      let at = query * KV_SPLITS + (first + lane) % KV_SPLITS;
      peak = stats[at].x;
      total = stats[at].y;
      sum = sums[at * HEAD + quad];
    }
  } else {
    for (var c = first + lane; c < splits; c += LANES * $PREFETCHu) {
      //#for a in PREFETCH
      let at$a = query * KV_SPLITS + min(c + $au * LANES, splits - 1u) % KV_SPLITS;
      let stat$a = stats[at$a];
      let sum$a = sums[at$a * HEAD + quad];
      //#endfor
      //#for a in PREFETCH
      if (c + $au * LANES < splits) {
        let top = max(peak, stat$a.x);
        let shrink = exp(peak - top);
        let share = exp(stat$a.x - top);
        total = fma(stat$a.y, share, total * shrink);
        sum = fma(sum$a, vec4<f32>(share), sum * shrink);
        peak = top;
      }
      //#endfor
    }
  }

  if (thread % QUADS == 0u) {
    lane_stats[lane] = vec2<f32>(peak, total);
  }
  lane_sums[thread] = sum;
  workgroupBarrier();
  if (lane > 0u) {
    return;
  }
  var top = NEGATIVE;
  //#for l in LANES
  top = max(top, lane_stats[$l].x);
  //#endfor
  total = 0.0;
  sum = vec4<f32>(0.0);
  //#for l in LANES
  {
    let share = exp(lane_stats[$l].x - top);
    total = fma(lane_stats[$l].y, share, total);
    sum = fma(lane_sums[$lu * QUADS + thread], vec4<f32>(share), sum);
  }
  //#endfor
  //#if SINKS
  total += exp(min(sinks[tile.x] - top, 80.0));
  //#endif
  //#if gating != none
  let y = gated(tile.y, tile.x * HEAD + quad, sum / total);
  //#else
  let y = sum / total;
  //#endif
  out[query * HEAD + quad] = y;
  reduce_scale(tile.y, y);
}
