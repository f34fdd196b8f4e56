// Merges the sums of the runs of cells that attention over latents stored (mla/latent_attention.wgsl). Segments of 128
// cells are merged in LANES lanes, each of which has every LANES-th segment, and then the lanes in order
// (online_softmax.wgsl). A workgroup has QUADS fours of a latent of one query; an invocation has TURNS pairs of a lane
// and a four.
//
// After `add_runs(query, row, first, thread)`, `weighted(quad)` returns four elements of the weighted sum, of the fours
// from `first` on; only where the row sees a cell. With SEGMENTS runs are segments, otherwise chunks.

//#import lib/rows
//#import lib/visible
//#import lib/online_softmax

override RUNS: u32; // places for runs of a query in `sums`
override FIRST_ROW: u32; // of `rows`

const SEGMENT = 128u; // cells
const CHUNK = 16u; // cells
const RANK4 = $RANK4u; // vec4 of a latent
const LANES = $LANESu;
const QUADS = $QUADSu;
const THREADS = $THREADSu; // of a workgroup

@group(0) @binding(1) var<storage, read> sums: array<vec4<f32>>; // [rows, HEADS, RUNS, RANK4]
@group(0) @binding(3) var<storage, read> stats: array<vec2<f32>>; // [rows, HEADS, RUNS]: peak, total
@group(0) @binding(4) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]

var<workgroup> lane_stats: array<vec2<f32>, LANES>; // peak, total
var<workgroup> lane_folds: array<vec2<f32>, LANES>; // shrink, share
var<workgroup> lane_sums: array<array<vec4<f32>, QUADS>, LANES>;

// Segments that a row sees: the first, and one past the last.
fn segments_of(row: Row) -> vec2<u32> {
  return vec2<u32>(visible_begin(row) / SEGMENT, (visible_end(row) + SEGMENT - 1u) / SEGMENT);
}

// Computes the factors of the lanes from their stats, which all invocations know.
fn fold_lanes(thread: u32) {
  if (thread < LANES) {
    var top = NEGATIVE;
    for (var l = 0u; l < thread; l++) {
      top = max(top, lane_stats[l].x);
    }
    lane_folds[thread] = fold_one(top, lane_stats[thread].x).xy;
  }
}

// Four elements of the weighted sum of latents: of the `quad`th four of the workgroup.
fn weighted(quad: u32) -> vec4<f32> {
  var total = 0.0;
  var sum = vec4<f32>(0.0);
  //#for l in LANES
  {
    let fold = lane_folds[$l];
    total = fma(lane_stats[$l].y, fold.y, total * fold.x);
    sum = fma(lane_sums[$l][quad], vec4<f32>(fold.y), sum * fold.x);
  }
  //#endfor
  return sum / total;
}

//#if SEGMENTS
// Runs are segments, and are added BLOCK at a time. The factors of a run are the same for all elements: the workgroup
// computes those of all runs once, side by side.

const BLOCK = 64u; // segments, at most THREADS

var<workgroup> segment_stats: array<vec2<f32>, BLOCK>; // peak, total
var<workgroup> segment_folds: array<vec2<f32>, BLOCK>; // shrink, share

fn add_runs(query: u32, row: Row, first: u32, thread: u32) {
  let range = segments_of(row);
  var before = NEGATIVE; // peak of the blocks before, of lane `thread % LANES`
  var total = 0.0; // of lane `thread`
  //#for t in TURNS
  let lane$t = min((thread + $tu * THREADS) / QUADS, LANES - 1u);
  let quad$t = min(first + (thread + $tu * THREADS) % QUADS, RANK4 - 1u);
  var sum$t = vec4<f32>(0.0);
  //#endfor
  for (var block = range.x; block < range.y; block += BLOCK) {
    let there = min(BLOCK, range.y - block);
    // Runs are loaded before their factors are computed: the waits are shared.
    //#for t in TURNS
    //#for a in RUNS_AHEAD
    var part$t_$a = sums[
      (query * RUNS + block + min(lane$t + $au * LANES, there - 1u)) * RANK4 + quad$t
    ];
    //#endfor
    //#endfor
    workgroupBarrier(); // until the reads of the block before are done
    if (thread < BLOCK) {
      segment_stats[thread] = stats[query * RUNS + block + min(thread, there - 1u)];
    }
    workgroupBarrier();
    if (thread < BLOCK) {
      // The factors of a run depend on the largest peak before it in its lane.
      var peak = before;
      for (var s = thread % LANES; s < there; s += LANES) {
        let own = segment_stats[s].x;
        peak = select(peak, max(peak, own), s < thread);
        before = max(before, own);
      }
      let fold = fold_one(peak, segment_stats[thread].x).xy;
      segment_folds[thread] = select(vec2<f32>(1.0, 0.0), fold, thread < there);
    }
    workgroupBarrier();
    if (thread < LANES) {
      for (var s = thread; s < there; s += LANES) {
        let fold = segment_folds[s];
        total = fma(segment_stats[s].y, fold.y, total * fold.x);
      }
      lane_stats[thread] = vec2<f32>(before, total);
    }
    for (var s = 0u; s < there; s += LANES * $RUNS_AHEADu) {
      let next = s + LANES * $RUNS_AHEADu;
      //#for t in TURNS
      //#for a in RUNS_AHEAD
      {
        let share = segment_folds[s + lane$t + $au * LANES];
        sum$t = fma(part$t_$a, vec4<f32>(share.y), sum$t * share.x);
      }
      part$t_$a = sums[
        (query * RUNS + block + min(next + lane$t + $au * LANES, there - 1u)) * RANK4 + quad$t
      ];
      //#endfor
      //#endfor
    }
  }
  workgroupBarrier();
  fold_lanes(thread);
  //#for t in TURNS
  if (thread + $tu * THREADS < LANES * QUADS) {
    lane_sums[lane$t][(thread + $tu * THREADS) % QUADS] = sum$t;
  }
  //#endfor
  workgroupBarrier();
}
//#else
// Runs are chunks, SHARES of which are a segment and are added one after the other. The factors of a run are the same
// for all elements: the workgroup computes them once. The first sums, and all peaks and totals, are loaded before the
// row is known: those that it does not see count as nothing.

const SHARES = $SHARESu; // chunks of a segment
const MAX_SEGMENTS = $MAX_SEGMENTSu;
const MAX_CHUNKS = MAX_SEGMENTS * SHARES;

var<workgroup> chunk_stats: array<array<vec2<f32>, SHARES>, MAX_SEGMENTS>; // peak, total
var<workgroup> chunk_folds: array<array<vec2<f32>, SHARES>, MAX_SEGMENTS>; // shrink, share
var<workgroup> segment_folds: array<vec2<f32>, MAX_SEGMENTS>; // shrink, share

// Computes the factors of all chunks and segments, and the stats of the lanes.
fn fold_chunks(query: u32, row: Row, thread: u32) {
  //#for c in CHUNK_TURNS
  let chunk$c = thread + $cu * THREADS;
  let stat$c = stats[query * RUNS + min(chunk$c, RUNS - 1u)];
  //#endfor
  let range = segments_of(row);
  let begin = visible_begin(row) / CHUNK;
  let end = (visible_end(row) + CHUNK - 1u) / CHUNK;
  //#for c in CHUNK_TURNS
  if (chunk$c < MAX_CHUNKS) {
    let seen = chunk$c >= begin && chunk$c < end;
    chunk_stats[chunk$c / SHARES][chunk$c % SHARES] = select(vec2<f32>(NEGATIVE, 0.0), stat$c, seen);
  }
  //#endfor
  workgroupBarrier();
  // The factors of a chunk depend on the largest peak before it.
  //#for c in CHUNK_TURNS
  if (chunk$c < MAX_CHUNKS) {
    let s = chunk$c / SHARES;
    let own = chunk$c % SHARES;
    var peak = NEGATIVE;
    //#for j in SHARES
    peak = max(peak, select(NEGATIVE, chunk_stats[s][$j].x, $ju < own));
    //#endfor
    chunk_folds[s][own] = fold_one(peak, chunk_stats[s][own].x).xy;
  }
  //#endfor
  workgroupBarrier();
  if (thread < LANES) {
    var peak = NEGATIVE;
    var total = 0.0;
    for (var s = range.x + thread; s < range.y; s += LANES) {
      var own = vec2<f32>(NEGATIVE, 0.0);
      //#for j in SHARES
      {
        let stat = chunk_stats[s][$j];
        let fold = chunk_folds[s][$j];
        own = vec2<f32>(max(own.x, stat.x), fma(stat.y, fold.y, own.y * fold.x));
      }
      //#endfor
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
  //#for t in TURNS
  let lane$t = min((thread + $tu * THREADS) / QUADS, LANES - 1u);
  let quad$t = min(first + (thread + $tu * THREADS) % QUADS, RANK4 - 1u);
  let begin$t = query * RUNS * RANK4 + quad$t;
  //#for j in SHARES
  var part$t_$j = sums[begin$t + min((range.x + lane$t) * SHARES + $ju, RUNS - 1u) * RANK4];
  //#endfor
  //#endfor
  fold_chunks(query, row, thread);
  fold_lanes(thread);
  //#for t in TURNS
  {
    var sum = vec4<f32>(0.0);
    for (var s = range.x + lane$t; s < range.y; s += LANES) {
      var own = vec4<f32>(0.0);
      //#for j in SHARES
      {
        let chunk = s * SHARES + $ju;
        // What is stored for other chunks may be NaN.
        if (chunk >= begin && chunk < end) {
          let fold = chunk_folds[s][$j];
          own = fma(part$t_$j, vec4<f32>(fold.y), own * fold.x);
        }
      }
      //#endfor
      let fold = segment_folds[s];
      sum = fma(own, vec4<f32>(fold.y), sum * fold.x);
      if (s + LANES < range.y) {
        //#for j in SHARES
        part$t_$j = sums[begin$t + min((s + LANES) * SHARES + $ju, RUNS - 1u) * RANK4];
        //#endfor
      }
    }
    if (thread + $tu * THREADS < LANES * QUADS) {
      lane_sums[lane$t][(thread + $tu * THREADS) % QUADS] = sum;
    }
  }
  //#endfor
  workgroupBarrier();
}
//#endif
