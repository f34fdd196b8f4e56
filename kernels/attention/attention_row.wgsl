// Sum, total and peak of softmax(cap(SCALE q . K)) V over one split (64 cells) of keys and values, to the bit those of
// attention.wgsl, for rows that are each the only one of their slot in flight. q, k and v are read as the row's qkv
// matmul left them: with NORMED queries and keys are RMS-normed here, and they are turned by rope (with AFTER_ROPE
// before they are multiplied by the norms' weights), to the bit as norm_rope_store.wgsl and the epilogue qkv do. The
// workgroups of the split that has the row's own cell compute its key and value themselves, and those of the first
// heads store them. attention_combine.wgsl adds the splits.
//
// With HANDOFF other workgroups of the same dispatch make q, k and v of the only row, all in one range of words
// (lib/handoff.wgsl).
//
// One workgroup per (row, $GROUP query heads of one key-value head, split):
//   heads    head vectors ($GROUP queries, the key and the value) have NORM_LANES invocations each, which take rope
//            pairs l, l + NORM_LANES, ...; vectors that are in memory are loaded first of all and squared while the
//            page numbers are loaded, vectors of the same dispatch are waited for after keys and values have begun to
//            load;
//   dots     $LANES invocations share a cell and compute their parts of its scores of all queries;
//   scores   one invocation per cell and query adds them;
//   weights  exp(score - peak of the split);
//   values   an invocation sums cells part, part + $PARTS, ... of four dims for $PAIRS_EACH pairs of queries; $SETS
//            sets of invocations have them all.
//
// Values are $values: plain, "normed" too, without weights, or of the "keys" as they are, normed so, where a row has no
// v.

//#import lib/rows
//#import lib/visible
//#import lib/attention_split
//#import lib/kv_load
//#if kv != f32
//#import lib/kv_pack
//#endif
//#import lib/rope
//#if HANDOFF
//#import lib/handoff
//#endif

override KV_HEADS: u32;
override HEAD_TILES: u32; // workgroups that share a key-value head
override TABLE_PAGES: u32; // pages per slot in the block table
override KV_SPLITS: u32; // of a whole block table
override FIRST_ROW: u32; // of `rows`
override SCALE: f32; // of scores
//#if NORMED
override EPS: f32;
//#endif

const THREADS = $THREADSu;
const GROUP = $GROUPu; // query heads of a workgroup, at most 4
const VEC4S = 2u * VEC8S;
const HALF = 4u * VEC8S; // rope pairs of a head
const LANES = $LANESu; // invocations a cell
const PARTS = $PARTSu; // of the split's cells, for the values
const STRIDE = SPLIT_CELLS + 4u; // neighbouring lanes and cells are in different banks
const EVEN = $(2 * PAIRS_OF_QUERIES)u; // queries, an even number of them
const NORM_LANES = $NORM_LANESu;
const KEY = GROUP; // among the head vectors
const VALUE = GROUP + 1u;

//#if !HANDOFF
@group(0) @binding(0) var<storage, read> qkv: array<f32>; // [rows, 2 HALF (heads + 2 KV_HEADS)], in the order of raw_at
//#endif
@group(0) @binding(1) var<storage, read_write> keys: array<vec4<u32>>; // [pages, KV_HEADS, PAGE], rows of a dtype
@group(0) @binding(2) var<storage, read_write> values: array<vec4<u32>>; // as keys
@group(0) @binding(3) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]
@group(0) @binding(4) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(5) var<storage, read_write> sums: array<vec4<f32>>; // [rows, heads, KV_SPLITS, VEC4S]
@group(0) @binding(6) var<storage, read_write> stats: array<vec2<f32>>; // [rows, heads, KV_SPLITS]: peak, total
@group(0) @binding(7) var<storage, read> rope: array<vec2<f32>>; // [positions, HALF]: cos, sin
//#if NORMED
@group(0) @binding(8) var<storage, read> norm_weight: array<f32>; // [2, 2 HALF]: of q, of k

var<workgroup> squares: array<vec4<f32>, (GROUP + 2u) * NORM_LANES / 4u>;
//#endif
var<workgroup> made: array<vec4<f32>, (GROUP + 2u) * VEC4S>; // head vectors
var<workgroup> pool: array<vec4<f32>, $POOL>; // [GROUP, LANES, STRIDE] floats of dots, then [PARTS, EVEN, VEC4S]
var<workgroup> scores: array<vec4<f32>, GROUP * SPLIT_CELLS / 4u>; // [GROUP, SPLIT_CELLS / 4]
var<workgroup> peaks: array<vec4<f32>, GROUP * 2u>; // [GROUP, 2], each number of 8 cells
var<workgroup> weights: array<vec4<f32>, SPLIT_CELLS>; // of the queries
var<workgroup> totals: array<f32, PARTS * EVEN>;

// How keys and values of a dtype are read and stored.
//#if kv == f32
alias PackedHalf = vec4<u32>; // dims 4j .. 4j + 3 of a value, as they are stored

fn load_half(row: u32, j: u32) -> PackedHalf {
  return values[row * 2u * VEC8S + j];
}

fn half_of(half: PackedHalf, j: u32) -> vec4<f32> {
  return bitcast<vec4<f32>>(half);
}

fn packed_half(v: Vec8, j: u32) -> PackedHalf {
  return bitcast<vec4<u32>>(select(v.lo, v.hi, j >= VEC8S));
}

fn packed_of(v: Vec8) -> PackedVec8 {
  return v;
}

fn put_key(row: u32, i: u32, v: PackedVec8) {
  let at = row * 2u * VEC8S + i;
  keys[at] = bitcast<vec4<u32>>(v.lo);
  keys[at + VEC8S] = bitcast<vec4<u32>>(v.hi);
}

fn put_value(row: u32, i: u32, v: PackedVec8) {
  let at = row * 2u * VEC8S + i;
  values[at] = bitcast<vec4<u32>>(v.lo);
  values[at + VEC8S] = bitcast<vec4<u32>>(v.hi);
}
//#else
alias PackedHalf = PackedVec8; // the vec8 that has dims 4j .. 4j + 3 of a value: its halves share words

fn load_half(row: u32, j: u32) -> PackedHalf {
  return load_value(row, j % VEC8S);
}

fn half_of(half: PackedHalf, j: u32) -> vec4<f32> {
  let v = vec8_of(half);
  return select(v.lo, v.hi, j >= VEC8S);
}

fn packed_half(v: Vec8, j: u32) -> PackedHalf {
  return packed_of(v);
}

fn packed_of(v: Vec8) -> PackedVec8 {
  return vec4<u32>(
    kv_word(vec2<f32>(v.lo.x, v.hi.x)),
    kv_word(vec2<f32>(v.lo.y, v.hi.y)),
    kv_word(vec2<f32>(v.lo.z, v.hi.z)),
    kv_word(vec2<f32>(v.lo.w, v.hi.w)),
  );
}

fn put_key(row: u32, i: u32, v: PackedVec8) {
  keys[row * VEC8S + i] = v;
}

fn put_value(row: u32, i: u32, v: PackedVec8) {
  values[row * VEC8S + i] = v;
}
//#endif

//#if NORMED
// What RMSNorm multiplies a head by: 1 / sqrt(mean(x^2) + EPS).
fn norm_scale(squares: f32, count: u32) -> f32 {
  return 1.0 / sqrt(squares / f32(count) + EPS);
}

// Where the first number of pair w of a head is; the second is `raw_step` further. Heads are in order.
fn raw_at(row: u32, all: u32, head: u32, w: u32) -> u32 {
  return (row * all + head) * 2u * HALF + w;
}

fn raw_step(all: u32) -> u32 {
  return HALF;
}

// The norm's weights of pair w.
fn gains(is_query: bool, w: u32) -> vec2<f32> {
  let at = select(2u * HALF, 0u, is_query) + w;
  return vec2<f32>(norm_weight[at], norm_weight[at + HALF]);
}

fn head_scale(squares: f32) -> f32 {
  return norm_scale(squares, 2u * HALF);
}
//#else
// Where the first number of pair w of a head is; the second is `raw_step` further. The first halves of all heads come
// before the second halves, row order rope_halves of src/gpu/matrix.ts.
fn raw_at(row: u32, all: u32, head: u32, w: u32) -> u32 {
  return (2u * row * all + head) * HALF + w;
}

fn raw_step(all: u32) -> u32 {
  return all * HALF;
}

fn gains(is_query: bool, w: u32) -> vec2<f32> {
  return vec2<f32>(1.0);
}

fn head_scale(squares: f32) -> f32 {
  return 1.0;
}
//#endif

//#if HANDOFF
// Called first, with the workgroups along y and z.
fn handoff_begin(y: u32, z: u32) {
  readers = y * z;
}
//#endif

fn squares_of(sum: f32, pair: vec2<f32>) -> f32 {
  return fma(pair.y, pair.y, fma(pair.x, pair.x, sum));
}

fn made_vec8(head: u32, i: u32) -> Vec8 {
  return Vec8(made[head * VEC4S + i], made[head * VEC4S + VEC8S + i]);
}

// The row of keys and of values where a cell of the split is stored, given those of its pages.
fn stored(pages_first: vec4<u32>, cell: u32) -> u32 {
  let odd = (cell & PAGE) != 0u;
  let low = select(pages_first.x, pages_first.y, odd);
  return select(low, select(pages_first.z, pages_first.w, odd), cell >= 2u * PAGE) + cell % PAGE;
}

fn highest(four: vec4<f32>) -> f32 {
  return max(max(four.x, four.y), max(four.z, four.w));
}

fn split_peak(query: u32) -> f32 {
  return highest(max(peaks[2u * query], peaks[2u * query + 1u]));
}

// Stores a number of `pool`.
fn put_dot(at: u32, value: f32) {
  pool[at / 4u][at % 4u] = value;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let row = tile.x;
  let kv_head = tile.y / HEAD_TILES;
  let heads = KV_HEADS * HEAD_TILES * GROUP;
  //#if values == keys
  let all_heads = heads + KV_HEADS;
  //#else
  let all_heads = heads + 2u * KV_HEADS;
  //#endif
  let head = thread / NORM_LANES;
  let norm_lane = thread % NORM_LANES;
  let is_query = head < GROUP;
  //#if values == keys
  let of_qkv = select(heads + kv_head, tile.y * GROUP + head, is_query);
  //#else
  let of_qkv = select(heads + (min(head, VALUE) - KEY) * KV_HEADS + kv_head, tile.y * GROUP + head, is_query);
  //#endif
  //#for p in PAIRS
  let w$p = norm_lane + $pu * NORM_LANES;
  let at$p = min(w$p, HALF - 1u);
  let gain$p = gains(is_query, at$p);
  //#endfor
  //#if !HANDOFF
  // The rope pairs of a head that an invocation takes.
  //#for p in PAIRS
  let from$p = raw_at(row, all_heads, of_qkv, at$p);
  let pair$p = vec2<f32>(qkv[from$p], qkv[from$p + raw_step(all_heads)]);
  //#endfor
  //#endif
  // Slot 0 is the most likely: its pages are loaded together with the row, before the row's slot is known.
  let guess = tile.z * (SPLIT_CELLS / PAGE);
  var four_pages = vec4<u32>(pages[guess], pages[guess + 1u], pages[guess + 2u], pages[guess + 3u]);
  let own = rows[FIRST_ROW + row];
  let begin = visible_begin(own);
  let end = visible_end(own);
  let split = tile.z + select(begin / SPLIT_CELLS, 0u, WINDOW == 0xffffffffu);
  let first = split * SPLIT_CELLS;
  if (first >= end || first + SPLIT_CELLS <= begin) {
    //#if HANDOFF
    // A workgroup without cells reads no heads and reports at once that it is done with them.
    if (thread == 0u) {
      done(0u);
    }
    workgroupBarrier();
    //#endif
    return;
  }
  let newest = own.cell;
  let has_new = newest / SPLIT_CELLS == split;
  let last = min(end - 1u - first, SPLIT_CELLS - 1u);
  let table = own.slot * TABLE_PAGES + first / PAGE;
  if (table != guess) {
    four_pages = vec4<u32>(pages[table], pages[table + 1u], pages[table + 2u], pages[table + 3u]);
  }
  let pages_first = (four_pages * KV_HEADS + kv_head) * PAGE; // those behind the split's last cell are not looked at

  //#for p in PAIRS
  let turn$p = rope[own.position * HALF + at$p];
  //#endfor
  //#if !HANDOFF
  // The squares of each invocation's pairs, where heads are normed.
  //#if NORMED
  if (head <= VALUE) {
    var square = 0.0;
    //#for p in PAIRS
    if (w$p < HALF) {
      square = squares_of(square, pair$p);
    }
    //#endfor
    squares[thread / 4u][thread % 4u] = square;
  }
  workgroupBarrier();
  //#endif
  //#endif
  let lane = thread % LANES;
  let cell = thread / LANES;
  //#for p in PASSES
  let key_at$p = stored(pages_first, min(cell + $(p * THREADS)u / LANES, last));
  //#for s in STEPS
  var key$p_$s = load_key(key_at$p, min(lane + $su * LANES, VEC8S - 1u));
  //#endfor
  //#endfor
  let query_set = select(0u, thread / (PARTS * VEC4S), $SETSu > 1u); // of queries
  let part = thread % (PARTS * VEC4S) / VEC4S;
  let j = thread % VEC4S;
  //#for c in CELLS
  var value$c = load_half(stored(pages_first, min(part + $cu * PARTS, last)), j);
  //#endfor

  //#if HANDOFF
  // The rope pairs of a head that an invocation takes, waited for while keys and values are loaded. Nothing is assumed
  // about when workgroups run: if the words are not there in time, this workgroup makes them itself, and loads its keys
  // and values again, so that no registers need to keep them until then.
  let wanted = is_query || (has_new && head <= VALUE);
  //#for p in PAIRS
  let from$p = raw_at(row, all_heads, of_qkv, at$p);
  var low$p = 1u;
  var high$p = 1u;
  if (wanted) {
    low$p = atomicLoad(&handoff[from$p]);
    high$p = atomicLoad(&handoff[from$p + raw_step(all_heads)]);
  }
  //#endfor
  for (var turn = 0u; turn < TURNS; turn++) {
    var all_there = true;
    //#for p in PAIRS
    all_there = all_there && low$p != 0u && high$p != 0u;
    //#endfor
    if (all_there) {
      break;
    }
    //#for p in PAIRS
    low$p = atomicLoad(&handoff[from$p]);
    high$p = atomicLoad(&handoff[from$p + raw_step(all_heads)]);
    //#endfor
  }
  //#for p in PAIRS
  if (low$p == 0u || high$p == 0u) {
    late = 1u;
  }
  //#endfor
  if (workgroupUniformLoad(&late) != 0u) {
    make_again(0u, MAKERS, thread);
    workgroupBarrier();
    //#for p in PAIRS
    low$p = atomicLoad(&handoff[from$p]);
    high$p = atomicLoad(&handoff[from$p + raw_step(all_heads)]);
    //#endfor
    //#for p in PASSES
    //#for s in STEPS
    key$p_$s = load_key(key_at$p, min(lane + $su * LANES, VEC8S - 1u));
    //#endfor
    //#endfor
    //#for c in CELLS
    value$c = load_half(stored(pages_first, min(part + $cu * PARTS, last)), j);
    //#endfor
  }
  //#for p in PAIRS
  let pair$p = vec2<f32>(bitcast<f32>(low$p), bitcast<f32>(high$p));
  //#endfor
  workgroupBarrier();
  if (thread == 0u) {
    done(0u);
  }
  // The squares of each invocation's pairs, where heads are normed.
  //#if NORMED
  if (head <= VALUE) {
    var square = 0.0;
    //#for p in PAIRS
    if (w$p < HALF) {
      square = squares_of(square, pair$p);
    }
    //#endfor
    squares[thread / 4u][thread % 4u] = square;
  }
  workgroupBarrier();
  //#endif
  //#endif

  if (is_query || (has_new && head <= VALUE)) {
    var scale = 1.0;
    //#if NORMED
    var sum = 0.0;
    //#for l in NORM_QUADS
    let four$l = squares[head * (NORM_LANES / 4u) + $lu];
    sum += four$l.x;
    sum += four$l.y;
    sum += four$l.z;
    sum += four$l.w;
    //#endfor
    scale = head_scale(sum);
    //#endif
    //#for p in PAIRS
    if (w$p < HALF) {
      //#if AFTER_ROPE
      let placed = select(turned(pair$p * scale, turn$p) * gain$p, pair$p, head == VALUE);
      //#else if values == plain
      let placed = select(turned(pair$p * scale * gain$p, turn$p), pair$p, head == VALUE);
      //#else
      let placed = select(turned(pair$p * scale * gain$p, turn$p), pair$p * scale, head == VALUE);
      //#endif
      let to = head * VEC4S + w$p / 4u;
      made[to][w$p % 4u] = placed.x;
      made[to + VEC8S][w$p % 4u] = placed.y;
    }
    //#endfor
  }
  workgroupBarrier();
  if (has_new && tile.y % HEAD_TILES == 0u && thread < VEC4S) {
    let to = stored(pages_first, newest - first);
    if (thread < VEC8S) {
      put_key(to, thread, packed_of(made_vec8(KEY, thread)));
    } else {
      put_value(to, thread - VEC8S, packed_of(made_vec8(VALUE, thread - VEC8S)));
    }
  }

  //#for p in PASSES
  //#for q in GROUP
  var dot$p_$q = 0.0;
  //#endfor
  //#endfor
  //#for s in STEPS
  if (($su + 1u) * LANES <= VEC8S || lane + $su * LANES < VEC8S) {
    let e = lane + $su * LANES;
    //#for p in PASSES
    // The new key is unpacked from its stored form. Compilers may remove packing and unpacking that are side by side.
    var packed_key$p = key$p_$s;
    if (first + cell + $(p * THREADS)u / LANES == newest) {
      packed_key$p = packed_of(made_vec8(KEY, e));
    }
    let k$p = vec8_of(packed_key$p);
    //#endfor
    //#for q in GROUP
    {
      let own_q = made_vec8($qu, e);
      //#for p in PASSES
      dot$p_$q = add8(dot$p_$q, own_q, k$p);
      //#endfor
    }
    //#endfor
  }
  //#endfor
  //#for p in PASSES
  if (cell + $(p * THREADS)u / LANES < SPLIT_CELLS) {
    //#for q in GROUP
    put_dot(($qu * LANES + lane) * STRIDE + cell + $(p * THREADS)u / LANES, dot$p_$q);
    //#endfor
  }
  //#endfor
  workgroupBarrier();
  let query = thread / SPLIT_CELLS;
  let own_cell = thread % SPLIT_CELLS;
  var score = NEGATIVE;
  if (query < GROUP) {
    var sum = 0.0;
    //#for l in LANES
    let dot_at$l = (query * LANES + $lu) * STRIDE + own_cell;
    sum += pool[dot_at$l / 4u][dot_at$l % 4u];
    //#endfor
    let seen = first + own_cell >= begin && first + own_cell < end;
    score = select(NEGATIVE, capped(vec4<f32>(sum * SCALE)).x, seen);
    scores[thread / 4u][thread % 4u] = score;
  }
  workgroupBarrier();
  if (thread < GROUP * 8u) {
    peaks[thread / 4u][thread % 4u] = highest(max(scores[2u * thread], scores[2u * thread + 1u]));
  }
  workgroupBarrier();
  if (query < GROUP) {
    weights[own_cell][query] = select(exp(score - split_peak(query)), 0.0, score == NEGATIVE);
  }
  workgroupBarrier();

  //#for h in PAIRS_EACH
  var total$h = vec2<f32>(0.0);
  var even$h = vec4<f32>(0.0);
  var odd$h = vec4<f32>(0.0);
  //#endfor
  //#for c in CELLS
  if (($cu + 1u) * PARTS <= SPLIT_CELLS || part + $cu * PARTS < SPLIT_CELLS) {
    var packed_value = value$c;
    // Cells behind the newest have weight 0, and may hold what times 0 is no number: an earlier request's infinity.
    if (first + part + $cu * PARTS >= newest) {
      packed_value = packed_half(made_vec8(VALUE, j % VEC8S), j);
    }
    let v = half_of(packed_value, j);
    let all = weights[part + $cu * PARTS];
    //#for h in PAIRS_EACH
    {
      let weight = select(all.xy, all.zw, query_set * $PAIRS_EACHu + $hu == 1u);
      total$h += weight;
      even$h = fma(vec4<f32>(weight.x), v, even$h);
      odd$h = fma(vec4<f32>(weight.y), v, odd$h);
    }
    //#endfor
  }
  //#endfor
  if (thread < $SETSu * PARTS * VEC4S) {
    //#for h in PAIRS_EACH
    let to$h = part * EVEN + 2u * (query_set * $PAIRS_EACHu + $hu);
    pool[to$h * VEC4S + j] = even$h;
    pool[(to$h + 1u) * VEC4S + j] = odd$h;
    if (j == 0u) {
      totals[to$h] = total$h.x;
      totals[to$h + 1u] = total$h.y;
    }
    //#endfor
  }
  workgroupBarrier();
  if (thread < GROUP * VEC4S) {
    var sum = vec4<f32>(0.0);
    //#for g in PARTS
    sum += pool[$(2 * PAIRS_OF_QUERIES * g)u * VEC4S + thread];
    //#endfor
    let query = row * heads + tile.y * GROUP + thread / VEC4S;
    sums[(query * KV_SPLITS + split) * VEC4S + j] = sum;
  }
  if (thread < GROUP) {
    var sum = 0.0;
    //#for g in PARTS
    sum += totals[$(2 * PAIRS_OF_QUERIES * g)u + thread];
    //#endfor
    let query = row * heads + tile.y * GROUP + thread;
    stats[query * KV_SPLITS + split] = vec2<f32>(split_peak(thread), sum);
  }
}
