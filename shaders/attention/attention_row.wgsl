// attention.wgsl, in the same order, for rows that are each the only one of their slot in flight, over what their
// qkv matmul left: queries and keys are normed and turned here, as norm_rope_store.wgsl does to the bit. The
// workgroups of the split that has the row's cell make its key and value themselves, and those of the first heads
// store them: nobody waits for others' stores.
//
// One workgroup per (row, $GROUP query heads of one key-value head, split) of many invocations, each with little to
// do: few workgroups have room for it, and each takes as long as its longest chain.
//
//   heads    head vectors, $GROUP queries, the key and the value, have NORM_LANES invocations each, which take rope
//            pairs l, l + NORM_LANES, ...; all keys and values are asked for before;
//   scores   $LANES invocations share a cell and make its scores of all queries;
//   weights  exp(score - peak of the split);
//   values   an invocation sums cells part, part + $PARTS, ... of four dims for two queries.
//
// Slots:
//   kv_load: `load_key`, `load_value` and `vec8_of` of a dtype (fragments/kv_load_*.wgsl), over `keys`, `values`,
//     `Vec8` and VEC8S as declared here.
//   kv_half: `load_half(row, j)` and `half_of(packed, j)` of it (kv/half_*.wgsl).
//   kv_put: `packed_of(v)`, `put_key(row, i, packed)` and `put_value` of it (kv/put_*.wgsl).

//use fragments/rows
//use fragments/soft_cap
//use attention/visible
//use kv_load
//use kv_half
//use kv_put
//use attention/turned
//use attention/norm_scale

override KV_HEADS: u32;
override HEAD_TILES: u32; // workgroups that share a key-value head
override TABLE_PAGES: u32; // pages per slot in the block table
override KV_SPLITS: u32; // of a whole block table
override FIRST_ROW: u32; // of `rows`
override SCALE: f32; // of scores

const SPLIT_CELLS = 64u; // cells
const THREADS = $THREADSu;
const GROUP = $GROUPu; // query heads of a workgroup, at most 4
const VEC8S = $VEC8Su; // of a head
const VEC4S = 2u * VEC8S;
const HALF = 4u * VEC8S; // rope pairs of a head
const LANES = $LANESu; // invocations a cell
const PARTS = $PARTSu; // of the split's cells, for the values
const STRIDE = SPLIT_CELLS + 1u; // odd: lanes write to different banks
const NEGATIVE = -3.0e38; // below every score; minus infinity would make NaN of inf - inf
const NORM_LANES = $NORM_LANESu;
const KEY = GROUP; // among the head vectors
const VALUE = GROUP + 1u;

@group(0) @binding(0) var<storage, read> qkv: array<f32>; // [rows, heads + 2 KV_HEADS, 8 VEC8S]
@group(0) @binding(1) var<storage, read_write> keys: array<vec4<u32>>; // [pages, KV_HEADS, PAGE], rows of a dtype
@group(0) @binding(2) var<storage, read_write> values: array<vec4<u32>>; // as keys
@group(0) @binding(3) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]
@group(0) @binding(4) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(5) var<storage, read_write> sums: array<vec4<f32>>; // [rows, heads, KV_SPLITS, VEC4S]
@group(0) @binding(6) var<storage, read_write> stats: array<vec2<f32>>; // [rows, heads, KV_SPLITS]: peak, total
@group(0) @binding(7) var<storage, read> rope: array<vec2<f32>>; // [positions, HALF]: cos, sin
@group(0) @binding(8) var<storage, read> norm_weight: array<f32>; // [2, 8 VEC8S]: of q, of k

struct Vec8 {
  lo: vec4<f32>, // dims 4i .. 4i + 3
  hi: vec4<f32>, // dims 4i .. 4i + 3 of the second half of a head
}

var<workgroup> squares: array<vec4<f32>, (GROUP + 2u) * NORM_LANES / 4u>;
var<workgroup> made: array<vec4<f32>, (GROUP + 2u) * VEC4S>; // head vectors
var<workgroup> pool: array<vec4<f32>, $POOL>; // LANES * STRIDE scores of all queries, then PARTS * 4 * VEC4S
var<workgroup> scores: array<vec4<f32>, SPLIT_CELLS>;
var<workgroup> peaks: array<vec4<f32>, 8>; // of 8 cells each
var<workgroup> totals: array<f32, PARTS * 4u>;

fn add8(sum: f32, q: Vec8, k: Vec8) -> f32 {
  let a = fma(q.lo.w, k.lo.w, fma(q.lo.z, k.lo.z, fma(q.lo.y, k.lo.y, fma(q.lo.x, k.lo.x, sum))));
  return fma(q.hi.w, k.hi.w, fma(q.hi.z, k.hi.z, fma(q.hi.y, k.hi.y, fma(q.hi.x, k.hi.x, a))));
}

fn squares_of(sum: f32, pair: vec2<f32>) -> f32 {
  return fma(pair.y, pair.y, fma(pair.x, pair.x, sum));
}

fn made_vec8(head: u32, i: u32) -> Vec8 {
  return Vec8(made[head * VEC4S + i], made[head * VEC4S + VEC8S + i]);
}

// The row of keys and of values where a cell is stored.
fn stored(slot: u32, kv_head: u32, cell: u32) -> u32 {
  let page = pages[slot * TABLE_PAGES + cell / PAGE];
  return (page * KV_HEADS + kv_head) * PAGE + cell % PAGE;
}

fn weighted(score: vec4<f32>, peak: vec4<f32>) -> vec4<f32> {
  return select(exp(score - peak), vec4<f32>(0.0), score == vec4<f32>(NEGATIVE));
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let row = tile.x;
  let own = rows[FIRST_ROW + row];
  let begin = visible_begin(own);
  let end = visible_end(own);
  let split = tile.z + select(begin / SPLIT_CELLS, 0u, WINDOW == 0xffffffffu);
  let first = split * SPLIT_CELLS;
  if (first >= end || first + SPLIT_CELLS <= begin) {
    return;
  }
  let kv_head = tile.y / HEAD_TILES;
  let heads = KV_HEADS * HEAD_TILES * GROUP;
  let newest = own.cell;
  let has_new = newest / SPLIT_CELLS == split;

  let lane = thread % LANES;
  let cell = thread / LANES;
  let key_at = stored(own.slot, kv_head, min(first + min(cell, SPLIT_CELLS - 1u), end - 1u));
  //for s in STEPS
  let key$s = load_key(key_at, min(lane + $su * LANES, VEC8S - 1u));
  //end
  let pair = thread / (PARTS * VEC4S); // of queries
  let part = thread % (PARTS * VEC4S) / VEC4S;
  let j = thread % VEC4S;
  //for c in CELLS
  let value$c = load_half(stored(own.slot, kv_head, min(first + part + $cu * PARTS, end - 1u)), j);
  //end

  let head = thread / NORM_LANES;
  let norm_lane = thread % NORM_LANES;
  let is_query = head < GROUP;
  let is_made = is_query || (has_new && head <= VALUE);
  let gain_at = select(2u * HALF, 0u, is_query);
  let from_head = row * (heads + 2u * KV_HEADS) +
    select(heads + (head - KEY) * KV_HEADS + kv_head, tile.y * GROUP + head, is_query);
  //for p in PAIRS
  let w$p = norm_lane + $pu * NORM_LANES;
  let at$p = min(w$p, HALF - 1u);
  let turn$p = rope[own.position * HALF + at$p];
  var pair$p = vec2<f32>();
  var gain$p = vec2<f32>();
  //end
  if (is_made) {
    var square = 0.0;
    //for p in PAIRS
    pair$p = vec2<f32>(qkv[from_head * 2u * HALF + at$p], qkv[from_head * 2u * HALF + HALF + at$p]);
    gain$p = vec2<f32>(norm_weight[gain_at + at$p], norm_weight[gain_at + HALF + at$p]);
    if (w$p < HALF) {
      square = squares_of(square, pair$p);
    }
    //end
    squares[thread / 4u][thread % 4u] = square;
  }
  workgroupBarrier();
  if (is_made) {
    var sum = 0.0;
    //for l in NORM_QUADS
    let four$l = squares[head * (NORM_LANES / 4u) + $lu];
    sum += four$l.x;
    sum += four$l.y;
    sum += four$l.z;
    sum += four$l.w;
    //end
    let scale = norm_scale(sum, 2u * HALF);
    //for p in PAIRS
    if (w$p < HALF) {
      let normed = turned(pair$p * scale * gain$p, turn$p);
      let turned_pair = select(normed, pair$p, head == VALUE);
      let to = head * VEC4S + w$p / 4u;
      made[to][w$p % 4u] = turned_pair.x;
      made[to + VEC8S][w$p % 4u] = turned_pair.y;
    }
    //end
  }
  workgroupBarrier();
  if (has_new && tile.y % HEAD_TILES == 0u && thread < VEC4S) {
    let to = stored(own.slot, kv_head, newest);
    if (thread < VEC8S) {
      put_key(to, thread, packed_of(made_vec8(KEY, thread)));
    } else {
      put_value(to, thread - VEC8S, packed_of(made_vec8(VALUE, thread - VEC8S)));
    }
  }

  let is_new = first + cell == newest;
  //for q in GROUP
  var dot$q = 0.0;
  //end
  //for s in STEPS
  if (($su + 1u) * LANES <= VEC8S || lane + $su * LANES < VEC8S) {
    let e = lane + $su * LANES;
    var k = vec8_of(key$s);
    if (is_new) {
      k = vec8_of(packed_of(made_vec8(KEY, e)));
    }
    //for q in GROUP
    dot$q = add8(dot$q, made_vec8($qu, e), k);
    //end
  }
  //end
  //for q in UNUSED
  let dot$(GROUP + q) = 0.0;
  //end
  if (cell < SPLIT_CELLS) {
    pool[lane * STRIDE + cell] = vec4<f32>(dot0, dot1, dot2, dot3);
  }
  workgroupBarrier();
  if (thread < SPLIT_CELLS) {
    var score = vec4<f32>(0.0);
    //for l in LANES
    score += pool[$lu * STRIDE + thread];
    //end
    let seen = first + thread >= begin && first + thread < end;
    scores[thread] = select(vec4<f32>(NEGATIVE), capped(score * SCALE), seen);
  }
  workgroupBarrier();
  if (thread < 8u) {
    var peak = scores[thread * 8u];
    //for c in EIGHT
    peak = max(peak, scores[thread * 8u + $cu]);
    //end
    peaks[thread] = peak;
  }
  workgroupBarrier();
  if (thread < SPLIT_CELLS) {
    var peak = peaks[0];
    //for c in EIGHT
    peak = max(peak, peaks[$c]);
    //end
    scores[thread] = weighted(scores[thread], peak);
  }
  workgroupBarrier();

  var total = vec2<f32>(0.0);
  var even = vec4<f32>(0.0);
  var odd = vec4<f32>(0.0);
  //for c in CELLS
  if (($cu + 1u) * PARTS <= SPLIT_CELLS || part + $cu * PARTS < SPLIT_CELLS) {
    var v = half_of(value$c, j);
    if (first + part + $cu * PARTS == newest) {
      let fresh = vec8_of(packed_of(made_vec8(VALUE, j % VEC8S)));
      v = select(fresh.lo, fresh.hi, j >= VEC8S);
    }
    let all = scores[part + $cu * PARTS];
    let weight = select(all.xy, all.zw, pair == 1u);
    total += weight;
    even = fma(vec4<f32>(weight.x), v, even);
    odd = fma(vec4<f32>(weight.y), v, odd);
  }
  //end
  if (pair < $QUERY_PAIRSu) {
    let to = part * 4u + 2u * pair;
    pool[to * VEC4S + j] = even;
    pool[(to + 1u) * VEC4S + j] = odd;
    if (j == 0u) {
      totals[to] = total.x;
      totals[to + 1u] = total.y;
    }
  }
  workgroupBarrier();
  if (thread < GROUP * VEC4S) {
    var sum = vec4<f32>(0.0);
    //for g in PARTS
    sum += pool[$(4 * g)u * VEC4S + thread];
    //end
    let query = row * heads + tile.y * GROUP + thread / VEC4S;
    sums[(query * KV_SPLITS + split) * VEC4S + j] = sum;
  }
  if (thread < GROUP) {
    var sum = 0.0;
    //for g in PARTS
    sum += totals[$(4 * g)u + thread];
    //end
    var peak = peaks[0];
    //for c in EIGHT
    peak = max(peak, peaks[$c]);
    //end
    let query = row * heads + tile.y * GROUP + thread;
    stats[query * KV_SPLITS + split] = vec2<f32>(peak[thread], sum);
  }
}
