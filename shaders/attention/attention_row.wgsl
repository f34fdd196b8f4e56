// attention.wgsl, in the same order, for rows that are each the only one of their slot in flight, over what their
// qkv matmul left: where the model does ($NORMED), queries and keys are normed here, and they are turned, as
// norm_rope_store.wgsl and epilogue/qkv.wgsl do to the bit. The workgroups of the split that has the row's cell make its
// key and value themselves, and those of the first heads store them. One workgroup per (row, $GROUP query heads of one
// key-value head, split):
//
//   heads    head vectors, $GROUP queries, the key and the value, have NORM_LANES invocations each, which take rope
//            pairs l, l + NORM_LANES, ...; stored ones are asked for first of all, and added up while the pages come,
//            those of the same dispatch are waited for behind keys and values;
//   dots     $LANES invocations share a cell and make their parts of its scores of all queries;
//   scores   an invocation a cell and query adds them;
//   weights  exp(score - peak of the split);
//   values   an invocation sums cells part, part + $PARTS, ... of four dims for $PAIRS_EACH pairs of queries; $SETS sets
//            of invocations have them all.
//
// Slots:
//   kv_load: `load_key`, `load_value` and `vec8_of` of a dtype (kv/load_*.wgsl), over `keys` and `values`.
//   kv_half: `load_half(row, j)`, `half_of(packed, j)` and `packed_half(v, j)` of it (kv/half_*.wgsl).
//   kv_put: `packed_of(v)`, `put_key(row, i, packed)` and `put_value` of it (kv/put_*.wgsl).
//   own: where heads are, `raw_at(row, all, head, w)` and `raw_step(all)`, and what norms them, `gains(is_query, w)` and
//     `head_scale(squares)` (own/normed.wgsl, own/plain.wgsl).
//   raw: what heads are read from (own/stored.wgsl, own/relayed.wgsl).
//   asked: the statements that read them at first, or nothing.
//   added: those that add their squares then, or nothing.
//   waited: those that wait for them behind keys and values (own/relayed_pairs.wgsl), or nothing.
//   unread: those of a workgroup that needs none (own/relayed_unread.wgsl), or nothing.

//use fragments/rows
//use attention/visible
//use attention/split
//use kv_load
//use kv_half
//use kv_put
//use attention/turned
//use own
//use raw

override KV_HEADS: u32;
override HEAD_TILES: u32; // workgroups that share a key-value head
override TABLE_PAGES: u32; // pages per slot in the block table
override KV_SPLITS: u32; // of a whole block table
override FIRST_ROW: u32; // of `rows`
override SCALE: f32; // of scores

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

@group(0) @binding(1) var<storage, read_write> keys: array<vec4<u32>>; // [pages, KV_HEADS, PAGE], rows of a dtype
@group(0) @binding(2) var<storage, read_write> values: array<vec4<u32>>; // as keys
@group(0) @binding(3) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]
@group(0) @binding(4) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(5) var<storage, read_write> sums: array<vec4<f32>>; // [rows, heads, KV_SPLITS, VEC4S]
@group(0) @binding(6) var<storage, read_write> stats: array<vec2<f32>>; // [rows, heads, KV_SPLITS]: peak, total
@group(0) @binding(7) var<storage, read> rope: array<vec2<f32>>; // [positions, HALF]: cos, sin
//for n in NORMED
var<workgroup> squares: array<vec4<f32>, (GROUP + 2u) * NORM_LANES / 4u>;
//end
var<workgroup> made: array<vec4<f32>, (GROUP + 2u) * VEC4S>; // head vectors
var<workgroup> pool: array<vec4<f32>, $POOL>; // [GROUP, LANES, STRIDE] floats of dots, then [PARTS, EVEN, VEC4S]
var<workgroup> scores: array<vec4<f32>, GROUP * SPLIT_CELLS / 4u>; // [GROUP, SPLIT_CELLS / 4]
var<workgroup> peaks: array<vec4<f32>, GROUP * 2u>; // [GROUP, 2], each number of 8 cells
var<workgroup> weights: array<vec4<f32>, SPLIT_CELLS>; // of the queries
var<workgroup> totals: array<f32, PARTS * EVEN>;

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

fn put_dot(at: u32, value: f32) {
  pool[at / 4u][at % 4u] = value;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let row = tile.x;
  let kv_head = tile.y / HEAD_TILES;
  let heads = KV_HEADS * HEAD_TILES * GROUP;
  let all_heads = heads + 2u * KV_HEADS;
  let head = thread / NORM_LANES;
  let norm_lane = thread % NORM_LANES;
  let is_query = head < GROUP;
  let of_qkv = select(heads + (min(head, VALUE) - KEY) * KV_HEADS + kv_head, tile.y * GROUP + head, is_query);
  //for p in PAIRS
  let w$p = norm_lane + $pu * NORM_LANES;
  let at$p = min(w$p, HALF - 1u);
  let gain$p = gains(is_query, at$p);
  //end
  //use asked
  // The first slot is the likeliest: its pages are asked for beside the row.
  let guess = tile.z * (SPLIT_CELLS / PAGE);
  var four_pages = vec4<u32>(pages[guess], pages[guess + 1u], pages[guess + 2u], pages[guess + 3u]);
  let own = rows[FIRST_ROW + row];
  let begin = visible_begin(own);
  let end = visible_end(own);
  let split = tile.z + select(begin / SPLIT_CELLS, 0u, WINDOW == 0xffffffffu);
  let first = split * SPLIT_CELLS;
  if (first >= end || first + SPLIT_CELLS <= begin) {
    //use unread
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

  //for p in PAIRS
  let turn$p = rope[own.position * HALF + at$p];
  //end
  //use added
  let lane = thread % LANES;
  let cell = thread / LANES;
  //for p in PASSES
  let key_at$p = stored(pages_first, min(cell + $(p * THREADS)u / LANES, last));
  //for s in STEPS
  var key$p_$s = load_key(key_at$p, min(lane + $su * LANES, VEC8S - 1u));
  //end
  //end
  let query_set = select(0u, thread / (PARTS * VEC4S), $SETSu > 1u); // of queries
  let part = thread % (PARTS * VEC4S) / VEC4S;
  let j = thread % VEC4S;
  //for c in CELLS
  var value$c = load_half(stored(pages_first, min(part + $cu * PARTS, last)), j);
  //end

  //use waited

  if (is_query || (has_new && head <= VALUE)) {
    var scale = 1.0;
    //for n in NORMED
    var sum = 0.0;
    //for l in NORM_QUADS
    let four$l = squares[head * (NORM_LANES / 4u) + $lu];
    sum += four$l.x;
    sum += four$l.y;
    sum += four$l.z;
    sum += four$l.w;
    //end
    scale = head_scale(sum);
    //end
    //for p in PAIRS
    if (w$p < HALF) {
      let placed = select(turned(pair$p * scale * gain$p, turn$p), pair$p, head == VALUE);
      let to = head * VEC4S + w$p / 4u;
      made[to][w$p % 4u] = placed.x;
      made[to + VEC8S][w$p % 4u] = placed.y;
    }
    //end
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

  //for p in PASSES
  //for q in GROUP
  var dot$p_$q = 0.0;
  //end
  //end
  //for s in STEPS
  if (($su + 1u) * LANES <= VEC8S || lane + $su * LANES < VEC8S) {
    let e = lane + $su * LANES;
    //for p in PASSES
    // What is stored is unpacked: compilers may take away packing and unpacking side by side.
    var packed_key$p = key$p_$s;
    if (first + cell + $(p * THREADS)u / LANES == newest) {
      packed_key$p = packed_of(made_vec8(KEY, e));
    }
    let k$p = vec8_of(packed_key$p);
    //end
    //for q in GROUP
    {
      let own_q = made_vec8($qu, e);
      //for p in PASSES
      dot$p_$q = add8(dot$p_$q, own_q, k$p);
      //end
    }
    //end
  }
  //end
  //for p in PASSES
  if (cell + $(p * THREADS)u / LANES < SPLIT_CELLS) {
    //for q in GROUP
    put_dot(($qu * LANES + lane) * STRIDE + cell + $(p * THREADS)u / LANES, dot$p_$q);
    //end
  }
  //end
  workgroupBarrier();
  let query = thread / SPLIT_CELLS;
  let own_cell = thread % SPLIT_CELLS;
  var score = NEGATIVE;
  if (query < GROUP) {
    var sum = 0.0;
    //for l in LANES
    let dot_at$l = (query * LANES + $lu) * STRIDE + own_cell;
    sum += pool[dot_at$l / 4u][dot_at$l % 4u];
    //end
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

  //for h in PAIRS_EACH
  var total$h = vec2<f32>(0.0);
  var even$h = vec4<f32>(0.0);
  var odd$h = vec4<f32>(0.0);
  //end
  //for c in CELLS
  if (($cu + 1u) * PARTS <= SPLIT_CELLS || part + $cu * PARTS < SPLIT_CELLS) {
    var packed_value = value$c;
    if (first + part + $cu * PARTS == newest) {
      packed_value = packed_half(made_vec8(VALUE, j % VEC8S), j);
    }
    let v = half_of(packed_value, j);
    let all = weights[part + $cu * PARTS];
    //for h in PAIRS_EACH
    {
      let weight = select(all.xy, all.zw, query_set * $PAIRS_EACHu + $hu == 1u);
      total$h += weight;
      even$h = fma(vec4<f32>(weight.x), v, even$h);
      odd$h = fma(vec4<f32>(weight.y), v, odd$h);
    }
    //end
  }
  //end
  if (thread < $SETSu * PARTS * VEC4S) {
    //for h in PAIRS_EACH
    let to$h = part * EVEN + 2u * (query_set * $PAIRS_EACHu + $hu);
    pool[to$h * VEC4S + j] = even$h;
    pool[(to$h + 1u) * VEC4S + j] = odd$h;
    if (j == 0u) {
      totals[to$h] = total$h.x;
      totals[to$h + 1u] = total$h.y;
    }
    //end
  }
  workgroupBarrier();
  if (thread < GROUP * VEC4S) {
    var sum = vec4<f32>(0.0);
    //for g in PARTS
    sum += pool[$(2 * PAIRS_OF_QUERIES * g)u * VEC4S + thread];
    //end
    let query = row * heads + tile.y * GROUP + thread / VEC4S;
    sums[(query * KV_SPLITS + split) * VEC4S + j] = sum;
  }
  if (thread < GROUP) {
    var sum = 0.0;
    //for g in PARTS
    sum += totals[$(2 * PAIRS_OF_QUERIES * g)u + thread];
    //end
    let query = row * heads + tile.y * GROUP + thread;
    stats[query * KV_SPLITS + split] = vec2<f32>(split_peak(thread), sum);
  }
}
