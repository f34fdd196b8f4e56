// out[r, h] = sum_c exp(peak_c - peak) sum_c / sum_c exp(peak_c - peak) total_c over the splits c of keys that row r
// sees, to the bit that of attention_combine.wgsl, for rows that keep at most as many partial sums as that has lanes.
//
// One invocation per (row, head, four of the head): where rows are many, no lanes need to share one. With VEC8S out is
// what half_rows.wgsl makes of such rows: one workgroup per row, whose invocations have $VEC8S vec8s each.

//#import lib/rows
//#import lib/visible
//#if VEC8S
//#import lib/scale_of
//#import lib/hi_of
//#else if REDUCES_SCALE
//#import lib/reduce_scale
//#endif

override HEADS: u32;
override KV_SPLITS: u32; // partial sums of a query, of split c of keys number c % KV_SPLITS
override FIRST_ROW: u32; // of `rows`
//#if VEC8S
override FIRST_SCALE: u32;
//#endif

const SPLIT_CELLS = 64u;
const HEAD = $HEADu; // vec4 of a head
const THREADS = 256u;
const NEGATIVE = -3.0e38; // below every score

@group(0) @binding(0) var<storage, read> sums: array<vec4<f32>>; // [rows, HEADS, KV_SPLITS, HEAD]
@group(0) @binding(1) var<storage, read> stats: array<vec2<f32>>; // [rows, HEADS, KV_SPLITS]: peak, total
@group(0) @binding(2) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]
//#if VEC8S
@group(0) @binding(3) var<storage, read_write> out: array<vec4<u32>>; // eight f16 each, [rows, HEADS, HEAD / 2]
@group(0) @binding(14) var<storage, read_write> scales: array<f32>; // [FIRST_SCALE + rows]
//#else
@group(0) @binding(3) var<storage, read_write> out: array<vec4<f32>>; // [rows, HEADS, HEAD]
//#endif
//#if SINKS
@group(0) @binding(13) var<storage, read> sinks: array<f32>; // [HEADS]: a logit without a value
//#endif
//#if gating != none
//#import lib/output_gate
//#endif

//#if REDUCES_SCALE
const PEAKS = 32u; // so that neighbouring lanes do not wait for each other

var<workgroup> group_peaks: array<atomic<u32>, PEAKS>; // bits of numbers without sign
var<workgroup> most: u32;

// Returns the largest number of all invocations; `size` holds the largest absolute values of this one.
fn group_peak(thread: u32, size: vec4<f32>) -> f32 {
  let peak = max(max(size.x, size.y), max(size.z, size.w));
  atomicMax(&group_peaks[thread % PEAKS], bitcast<u32>(peak));
  workgroupBarrier();
  if (thread == 0u) {
    for (var i = 0u; i < PEAKS; i++) {
      most = max(most, atomicLoad(&group_peaks[i]));
    }
  }
  return bitcast<f32>(workgroupUniformLoad(&most));
}
//#endif

//#if VEC8S
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let row = group.y;
  let vec8s = HEADS * HEAD / 2u;
  var peak = vec4<f32>(0.0);
  //#for u in VEC8S
  var lo$u = vec4<f32>(0.0);
  var hi$u = vec4<f32>(0.0);
  if ($uu * THREADS + thread < vec8s) {
    lo$u = output(row, 2u * ($uu * THREADS + thread));
    hi$u = output(row, 2u * ($uu * THREADS + thread) + 1u);
    peak = max(peak, max(abs(lo$u), abs(hi$u)));
  }
  //#endfor
  let scale = scale_of(group_peak(thread, peak));
  if (thread == 0u) {
    scales[FIRST_SCALE + row] = scale;
  }
  //#for u in VEC8S
  if ($uu * THREADS + thread < vec8s) {
    out[row * vec8s + $uu * THREADS + thread] = packed(lo$u * scale, hi$u * scale);
  }
  //#endfor
}
//#else
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let at = group.x * THREADS + thread;
  var y = vec4<f32>(0.0);
  if (at < HEADS * HEAD) {
    y = output(group.y, at);
    out[group.y * HEADS * HEAD + at] = y;
  }
  //#if REDUCES_SCALE
  let peak = group_peak(thread, abs(y));
  if (thread == 0u) {
    reduce_scale(group.y, vec4<f32>(peak));
  }
  //#endif
}
//#endif

// Four numbers of a row, gated where they have gates.
fn output(row: u32, at: u32) -> vec4<f32> {
  let y = combined(row, at);
  //#if gating != none
  return gated(row, at, y);
  //#else
  return y;
  //#endif
}

// Four numbers of a row.
fn combined(row: u32, at: u32) -> vec4<f32> {
  let own = rows[FIRST_ROW + row];
  let query = row * HEADS + at / HEAD;
  let seen = (visible_end(own) + SPLIT_CELLS - 1u) / SPLIT_CELLS;
  let kept = select(seen, min(seen, KV_SPLITS), WINDOW == 0xffffffffu);
  if (kept == 0u) {
    return vec4<f32>(0.0);
  }
  let first = visible_begin(own) / SPLIT_CELLS;
  var top = NEGATIVE;
  for (var c = first; c < kept; c++) {
    top = max(top, stats[query * KV_SPLITS + c % KV_SPLITS].x);
  }
  var total = 0.0;
  var sum = vec4<f32>(0.0);
  for (var c = first; c < kept; c += $PREFETCHu) {
    //#for a in PREFETCH
    let at$a = query * KV_SPLITS + min(c + $au, kept - 1u) % KV_SPLITS;
    let stat$a = stats[at$a];
    let sum$a = sums[at$a * HEAD + at % HEAD];
    //#endfor
    //#for a in PREFETCH
    if (c + $au < kept) {
      let share = exp(stat$a.x - top);
      total = fma(stat$a.y, share, total);
      sum = fma(sum$a, vec4<f32>(share), sum);
    }
    //#endfor
  }
  //#if SINKS
  total += exp(min(sinks[at / HEAD] - top, 80.0));
  //#endif
  return sum / total;
}
