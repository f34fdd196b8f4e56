// attention.wgsl, in the same order, for rows that are each the only one of their slot in flight, over what their
// qkv matmul left: queries and keys are normed and turned here, as norm_rope_store.wgsl does to the bit. The
// workgroups of the split that has the row's cell make its key and value themselves, and those of the first heads
// store them: nobody waits for others' stores. One workgroup per (row, 2 query heads of one key-value head, split):
//
//   heads    head vectors, 2 queries, the key and the value, have NORM_LANES invocations each, which take rope
//            pairs l, l + NORM_LANES, ...; all keys and values are asked for before;
//   scores   8 invocations share a cell and make its scores of all queries;
//   weights  exp(score - peak of the split);
//   values   an invocation sums cells part, part + 8, ... of four dims for 1 pairs of queries; 1 sets
//            of invocations have them all.
//
// Slots:
//   kv_load: `load_key`, `load_value` and `vec8_of` of a dtype (fragments/kv_load_*.wgsl), over `keys`, `values`,
//     `Vec8` and VEC8S as declared here.
//   kv_half: `load_half(row, j)`, `half_of(packed, j)` and `packed_half(v, j)` of it (kv/half_*.wgsl).
//   kv_put: `packed_of(v)`, `put_key(row, i, packed)` and `put_value` of it (kv/put_*.wgsl).

// What the kernels share about rows and slots; src/model/plan/rows_layout.ts mirrors the word offsets.

// One row of a forward pass.
struct Row {
  token: u32,
  position: u32, // in the text: for rope and for the noise; the row sees logical cells 0 .. position
  slot: u32,
  cell: u32, // where its key and value go, counted in tokens from the start of the slot's pages
  base: u32, // logical cells below are stored at the cell of the same number, the others on the path
  live: u32, // 0: padding; computes, but stores no key and no value
  zero: vec2<u32>,
  path: vec4<u32>, // byte i: logical cell base + i is stored at cell base + this, for base + i <= position
}

// The row of a token that follows the ones in the cells before its own: its path is empty.
fn chain_row(token: u32, slot: u32, cell: u32) -> Row {
  return Row(token, cell, slot, cell, cell + 1u, 1u, vec2<u32>(), vec4<u32>());
}

// One sequence in flight.
struct Slot {
  length: u32, // tokens whose keys and values are final
  pending: u32, // the newest token; its key and value are not computed yet
  seed: u32,
  top_k: u32, // 0 = off
  temperature: f32, // 0 = greedy
  top_p: f32,
  min_p: f32,
  limit: u32, // cells that it owns; a round that might need more stores nothing; 0 once it has stopped
  stops_lo: vec4<u32>, // token ids that end it, NOT_A_TOKEN where there are fewer than eight
  stops_hi: vec4<u32>,
}

const PAGE = 16u; // tokens a KV page
const NO_SLOT = 0xffffffffu; // a place of the batch without a sequence
// cap tanh(score / cap), Gemma 2's soft cap. tanh is 1 from 9 on; past 44 exp overflows in some drivers.

override CAP: f32; // 0 = no cap

fn capped(score: vec4<f32>) -> vec4<f32> {
  if (CAP == 0.0) {
    return score;
  }
  return tanh(clamp(score / CAP, vec4<f32>(-15.0), vec4<f32>(15.0))) * CAP;
}
// Which logical cells a row sees: the WINDOW ones that end with its own, or all up to there. And where
// they are stored: cells of other nodes of a tree may come between. Sums go by logical cell alone, so that a
// row has the same bits wherever its cells are stored.



override WINDOW: u32; // cells, the row's own the last; 0xffffffff = no window

fn visible_begin(row: Row) -> u32 {
  return row.position + 1u - min(WINDOW, row.position + 1u);
}

// One past the last cell that the row sees; 0 for padding.
fn visible_end(row: Row) -> u32 {
  return (row.position + 1u) * row.live;
}

// Whether some of the cells below `to` that the row may see are on its path; never for a chain.
fn scattered(row: Row, to: u32) -> bool {
  return row.base < min(to, visible_end(row));
}

// Where a logical cell that the row sees is stored.
fn physical(row: Row, cell: u32) -> u32 {
  let i = cell - row.base;
  let offset = (row.path[(i >> 2u) & 3u] >> (8u * (i & 3u))) & 0xffu;
  return select(row.base + offset, cell, cell < row.base);
}
// Keys and values in f32: a row is [HEAD_DIM] in order. Vec8 i is dims 4i .. 4i + 3 of either half.

alias PackedVec8 = Vec8; // eight values as they are stored

fn load_key(row: u32, i: u32) -> PackedVec8 {
  let at = row * 2u * VEC8S + i;
  return PackedVec8(bitcast<vec4<f32>>(keys[at]), bitcast<vec4<f32>>(keys[at + VEC8S]));
}

fn load_value(row: u32, i: u32) -> PackedVec8 {
  let at = row * 2u * VEC8S + i;
  return PackedVec8(bitcast<vec4<f32>>(values[at]), bitcast<vec4<f32>>(values[at + VEC8S]));
}

fn vec8_of(packed: PackedVec8) -> Vec8 {
  return packed;
}
// Half of a vec8 of values in f32: dims 4j .. 4j + 3 of a head.

alias PackedHalf = vec4<u32>;

fn load_half(row: u32, j: u32) -> PackedHalf {
  return values[row * 2u * VEC8S + j];
}

fn half_of(half: PackedHalf, j: u32) -> vec4<f32> {
  return bitcast<vec4<f32>>(half);
}

fn packed_half(v: Vec8, j: u32) -> PackedHalf {
  return bitcast<vec4<u32>>(select(v.lo, v.hi, j >= VEC8S));
}
// Writes vec8s of keys and values as kv_load_f32.wgsl reads them.

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
// A rope pair turned: (a, b) -> (a cos - b sin, b cos + a sin), turn = (cos, sin).

fn turned(pair: vec2<f32>, turn: vec2<f32>) -> vec2<f32> {
  return vec2<f32>(
    fma(pair.x, turn.x, -(pair.y * turn.y)),
    fma(pair.y, turn.x, pair.x * turn.y),
  );
}
// What RMSNorm multiplies a head by: 1 / sqrt(mean(x^2) + EPS).

override EPS: f32;

fn norm_scale(squares: f32, count: u32) -> f32 {
  return 1.0 / sqrt(squares / f32(count) + EPS);
}

override KV_HEADS: u32;
override HEAD_TILES: u32; // workgroups that share a key-value head
override TABLE_PAGES: u32; // pages per slot in the block table
override KV_SPLITS: u32; // of a whole block table
override FIRST_ROW: u32; // of `rows`
override SCALE: f32; // of scores

const SPLIT_CELLS = 64u; // cells
const THREADS = 256u;
const GROUP = 2u; // query heads of a workgroup, at most 4
const VEC8S = 16u; // of a head
const VEC4S = 2u * VEC8S;
const HALF = 4u * VEC8S; // rope pairs of a head
const LANES = 8u; // invocations a cell
const PARTS = 8u; // of the split's cells, for the values
const STRIDE = SPLIT_CELLS + 1u; // odd: lanes write to different banks
const NEGATIVE = -3.0e38; // below every score; minus infinity would make NaN of inf - inf
const NORM_LANES = 32u;
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
var<workgroup> pool: array<vec4<f32>, 1024>; // LANES * STRIDE scores of all queries, then PARTS * 4 * VEC4S
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

// The row of keys and of values where a cell of the split is stored, given those of its pages.
fn stored(pages_first: vec4<u32>, cell: u32) -> u32 {
  let odd = (cell & PAGE) != 0u;
  let low = select(pages_first.x, pages_first.y, odd);
  return select(low, select(pages_first.z, pages_first.w, odd), cell >= 2u * PAGE) + cell % PAGE;
}

fn split_peak() -> vec4<f32> {
  var peak = peaks[0];
  peak = max(peak, peaks[0]);
  peak = max(peak, peaks[1]);
  peak = max(peak, peaks[2]);
  peak = max(peak, peaks[3]);
  peak = max(peak, peaks[4]);
  peak = max(peak, peaks[5]);
  peak = max(peak, peaks[6]);
  peak = max(peak, peaks[7]);
  return peak;
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

  let last = min(end - 1u - first, SPLIT_CELLS - 1u);
  let table = own.slot * TABLE_PAGES + first / PAGE;
  let pages_first = (vec4<u32>(
    pages[table],
    pages[table + min(1u, last / PAGE)],
    pages[table + min(2u, last / PAGE)],
    pages[table + min(3u, last / PAGE)],
  ) * KV_HEADS + kv_head) * PAGE;

  let lane = thread % LANES;
  let cell = thread / LANES;
  let key_at0 = stored(pages_first, min(cell + 0u / LANES, last));
  let key0_0 = load_key(key_at0, min(lane + 0u * LANES, VEC8S - 1u));
  let key0_1 = load_key(key_at0, min(lane + 1u * LANES, VEC8S - 1u));
  let key_at1 = stored(pages_first, min(cell + 256u / LANES, last));
  let key1_0 = load_key(key_at1, min(lane + 0u * LANES, VEC8S - 1u));
  let key1_1 = load_key(key_at1, min(lane + 1u * LANES, VEC8S - 1u));
  let query_set = select(0u, thread / (PARTS * VEC4S), 1u > 1u); // of queries
  let part = thread % (PARTS * VEC4S) / VEC4S;
  let j = thread % VEC4S;
  let value0 = load_half(stored(pages_first, min(part + 0u * PARTS, last)), j);
  let value1 = load_half(stored(pages_first, min(part + 1u * PARTS, last)), j);
  let value2 = load_half(stored(pages_first, min(part + 2u * PARTS, last)), j);
  let value3 = load_half(stored(pages_first, min(part + 3u * PARTS, last)), j);
  let value4 = load_half(stored(pages_first, min(part + 4u * PARTS, last)), j);
  let value5 = load_half(stored(pages_first, min(part + 5u * PARTS, last)), j);
  let value6 = load_half(stored(pages_first, min(part + 6u * PARTS, last)), j);
  let value7 = load_half(stored(pages_first, min(part + 7u * PARTS, last)), j);

  let head = thread / NORM_LANES;
  let norm_lane = thread % NORM_LANES;
  let is_query = head < GROUP;
  let is_made = is_query || (has_new && head <= VALUE);
  let gain_at = select(2u * HALF, 0u, is_query);
  let from_head = row * (heads + 2u * KV_HEADS) +
    select(heads + (head - KEY) * KV_HEADS + kv_head, tile.y * GROUP + head, is_query);
  let w0 = norm_lane + 0u * NORM_LANES;
  let at0 = min(w0, HALF - 1u);
  let turn0 = rope[own.position * HALF + at0];
  var pair0 = vec2<f32>();
  var gain0 = vec2<f32>();
  let w1 = norm_lane + 1u * NORM_LANES;
  let at1 = min(w1, HALF - 1u);
  let turn1 = rope[own.position * HALF + at1];
  var pair1 = vec2<f32>();
  var gain1 = vec2<f32>();
  if (is_made) {
    var square = 0.0;
    pair0 = vec2<f32>(qkv[from_head * 2u * HALF + at0], qkv[from_head * 2u * HALF + HALF + at0]);
    gain0 = vec2<f32>(norm_weight[gain_at + at0], norm_weight[gain_at + HALF + at0]);
    if (w0 < HALF) {
      square = squares_of(square, pair0);
    }
    pair1 = vec2<f32>(qkv[from_head * 2u * HALF + at1], qkv[from_head * 2u * HALF + HALF + at1]);
    gain1 = vec2<f32>(norm_weight[gain_at + at1], norm_weight[gain_at + HALF + at1]);
    if (w1 < HALF) {
      square = squares_of(square, pair1);
    }
    squares[thread / 4u][thread % 4u] = square;
  }
  workgroupBarrier();
  if (is_made) {
    var sum = 0.0;
    let four0 = squares[head * (NORM_LANES / 4u) + 0u];
    sum += four0.x;
    sum += four0.y;
    sum += four0.z;
    sum += four0.w;
    let four1 = squares[head * (NORM_LANES / 4u) + 1u];
    sum += four1.x;
    sum += four1.y;
    sum += four1.z;
    sum += four1.w;
    let four2 = squares[head * (NORM_LANES / 4u) + 2u];
    sum += four2.x;
    sum += four2.y;
    sum += four2.z;
    sum += four2.w;
    let four3 = squares[head * (NORM_LANES / 4u) + 3u];
    sum += four3.x;
    sum += four3.y;
    sum += four3.z;
    sum += four3.w;
    let four4 = squares[head * (NORM_LANES / 4u) + 4u];
    sum += four4.x;
    sum += four4.y;
    sum += four4.z;
    sum += four4.w;
    let four5 = squares[head * (NORM_LANES / 4u) + 5u];
    sum += four5.x;
    sum += four5.y;
    sum += four5.z;
    sum += four5.w;
    let four6 = squares[head * (NORM_LANES / 4u) + 6u];
    sum += four6.x;
    sum += four6.y;
    sum += four6.z;
    sum += four6.w;
    let four7 = squares[head * (NORM_LANES / 4u) + 7u];
    sum += four7.x;
    sum += four7.y;
    sum += four7.z;
    sum += four7.w;
    let scale = norm_scale(sum, 2u * HALF);
    if (w0 < HALF) {
      let normed = turned(pair0 * scale * gain0, turn0);
      let turned_pair = select(normed, pair0, head == VALUE);
      let to = head * VEC4S + w0 / 4u;
      made[to][w0 % 4u] = turned_pair.x;
      made[to + VEC8S][w0 % 4u] = turned_pair.y;
    }
    if (w1 < HALF) {
      let normed = turned(pair1 * scale * gain1, turn1);
      let turned_pair = select(normed, pair1, head == VALUE);
      let to = head * VEC4S + w1 / 4u;
      made[to][w1 % 4u] = turned_pair.x;
      made[to + VEC8S][w1 % 4u] = turned_pair.y;
    }
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

  var dot0_0 = 0.0;
  var dot0_1 = 0.0;
  let dot0_2 = 0.0;
  let dot0_3 = 0.0;
  var dot1_0 = 0.0;
  var dot1_1 = 0.0;
  let dot1_2 = 0.0;
  let dot1_3 = 0.0;
  if ((0u + 1u) * LANES <= VEC8S || lane + 0u * LANES < VEC8S) {
    let e = lane + 0u * LANES;
    // What is stored is unpacked: compilers may take away packing and unpacking side by side.
    var packed_key0 = key0_0;
    if (first + cell + 0u / LANES == newest) {
      packed_key0 = packed_of(made_vec8(KEY, e));
    }
    let k0 = vec8_of(packed_key0);
    // What is stored is unpacked: compilers may take away packing and unpacking side by side.
    var packed_key1 = key1_0;
    if (first + cell + 256u / LANES == newest) {
      packed_key1 = packed_of(made_vec8(KEY, e));
    }
    let k1 = vec8_of(packed_key1);
    {
      let own_q = made_vec8(0u, e);
      dot0_0 = add8(dot0_0, own_q, k0);
      dot1_0 = add8(dot1_0, own_q, k1);
    }
    {
      let own_q = made_vec8(1u, e);
      dot0_1 = add8(dot0_1, own_q, k0);
      dot1_1 = add8(dot1_1, own_q, k1);
    }
  }
  if ((1u + 1u) * LANES <= VEC8S || lane + 1u * LANES < VEC8S) {
    let e = lane + 1u * LANES;
    // What is stored is unpacked: compilers may take away packing and unpacking side by side.
    var packed_key0 = key0_1;
    if (first + cell + 0u / LANES == newest) {
      packed_key0 = packed_of(made_vec8(KEY, e));
    }
    let k0 = vec8_of(packed_key0);
    // What is stored is unpacked: compilers may take away packing and unpacking side by side.
    var packed_key1 = key1_1;
    if (first + cell + 256u / LANES == newest) {
      packed_key1 = packed_of(made_vec8(KEY, e));
    }
    let k1 = vec8_of(packed_key1);
    {
      let own_q = made_vec8(0u, e);
      dot0_0 = add8(dot0_0, own_q, k0);
      dot1_0 = add8(dot1_0, own_q, k1);
    }
    {
      let own_q = made_vec8(1u, e);
      dot0_1 = add8(dot0_1, own_q, k0);
      dot1_1 = add8(dot1_1, own_q, k1);
    }
  }
  if (cell + 0u / LANES < SPLIT_CELLS) {
    pool[lane * STRIDE + cell + 0u / LANES] = vec4<f32>(dot0_0, dot0_1, dot0_2, dot0_3);
  }
  if (cell + 256u / LANES < SPLIT_CELLS) {
    pool[lane * STRIDE + cell + 256u / LANES] = vec4<f32>(dot1_0, dot1_1, dot1_2, dot1_3);
  }
  workgroupBarrier();
  if (thread < SPLIT_CELLS) {
    var score = vec4<f32>(0.0);
    score += pool[0u * STRIDE + thread];
    score += pool[1u * STRIDE + thread];
    score += pool[2u * STRIDE + thread];
    score += pool[3u * STRIDE + thread];
    score += pool[4u * STRIDE + thread];
    score += pool[5u * STRIDE + thread];
    score += pool[6u * STRIDE + thread];
    score += pool[7u * STRIDE + thread];
    let seen = first + thread >= begin && first + thread < end;
    scores[thread] = select(vec4<f32>(NEGATIVE), capped(score * SCALE), seen);
  }
  workgroupBarrier();
  if (thread < 8u) {
    var peak = scores[thread * 8u];
    peak = max(peak, scores[thread * 8u + 0u]);
    peak = max(peak, scores[thread * 8u + 1u]);
    peak = max(peak, scores[thread * 8u + 2u]);
    peak = max(peak, scores[thread * 8u + 3u]);
    peak = max(peak, scores[thread * 8u + 4u]);
    peak = max(peak, scores[thread * 8u + 5u]);
    peak = max(peak, scores[thread * 8u + 6u]);
    peak = max(peak, scores[thread * 8u + 7u]);
    peaks[thread] = peak;
  }
  workgroupBarrier();
  if (thread < SPLIT_CELLS) {
    scores[thread] = weighted(scores[thread], split_peak());
  }
  workgroupBarrier();

  var total0 = vec2<f32>(0.0);
  var even0 = vec4<f32>(0.0);
  var odd0 = vec4<f32>(0.0);
  if ((0u + 1u) * PARTS <= SPLIT_CELLS || part + 0u * PARTS < SPLIT_CELLS) {
    var packed_value = value0;
    if (first + part + 0u * PARTS == newest) {
      packed_value = packed_half(made_vec8(VALUE, j % VEC8S), j);
    }
    let v = half_of(packed_value, j);
    let all = scores[part + 0u * PARTS];
    {
      let weight = select(all.xy, all.zw, query_set * 1u + 0u == 1u);
      total0 += weight;
      even0 = fma(vec4<f32>(weight.x), v, even0);
      odd0 = fma(vec4<f32>(weight.y), v, odd0);
    }
  }
  if ((1u + 1u) * PARTS <= SPLIT_CELLS || part + 1u * PARTS < SPLIT_CELLS) {
    var packed_value = value1;
    if (first + part + 1u * PARTS == newest) {
      packed_value = packed_half(made_vec8(VALUE, j % VEC8S), j);
    }
    let v = half_of(packed_value, j);
    let all = scores[part + 1u * PARTS];
    {
      let weight = select(all.xy, all.zw, query_set * 1u + 0u == 1u);
      total0 += weight;
      even0 = fma(vec4<f32>(weight.x), v, even0);
      odd0 = fma(vec4<f32>(weight.y), v, odd0);
    }
  }
  if ((2u + 1u) * PARTS <= SPLIT_CELLS || part + 2u * PARTS < SPLIT_CELLS) {
    var packed_value = value2;
    if (first + part + 2u * PARTS == newest) {
      packed_value = packed_half(made_vec8(VALUE, j % VEC8S), j);
    }
    let v = half_of(packed_value, j);
    let all = scores[part + 2u * PARTS];
    {
      let weight = select(all.xy, all.zw, query_set * 1u + 0u == 1u);
      total0 += weight;
      even0 = fma(vec4<f32>(weight.x), v, even0);
      odd0 = fma(vec4<f32>(weight.y), v, odd0);
    }
  }
  if ((3u + 1u) * PARTS <= SPLIT_CELLS || part + 3u * PARTS < SPLIT_CELLS) {
    var packed_value = value3;
    if (first + part + 3u * PARTS == newest) {
      packed_value = packed_half(made_vec8(VALUE, j % VEC8S), j);
    }
    let v = half_of(packed_value, j);
    let all = scores[part + 3u * PARTS];
    {
      let weight = select(all.xy, all.zw, query_set * 1u + 0u == 1u);
      total0 += weight;
      even0 = fma(vec4<f32>(weight.x), v, even0);
      odd0 = fma(vec4<f32>(weight.y), v, odd0);
    }
  }
  if ((4u + 1u) * PARTS <= SPLIT_CELLS || part + 4u * PARTS < SPLIT_CELLS) {
    var packed_value = value4;
    if (first + part + 4u * PARTS == newest) {
      packed_value = packed_half(made_vec8(VALUE, j % VEC8S), j);
    }
    let v = half_of(packed_value, j);
    let all = scores[part + 4u * PARTS];
    {
      let weight = select(all.xy, all.zw, query_set * 1u + 0u == 1u);
      total0 += weight;
      even0 = fma(vec4<f32>(weight.x), v, even0);
      odd0 = fma(vec4<f32>(weight.y), v, odd0);
    }
  }
  if ((5u + 1u) * PARTS <= SPLIT_CELLS || part + 5u * PARTS < SPLIT_CELLS) {
    var packed_value = value5;
    if (first + part + 5u * PARTS == newest) {
      packed_value = packed_half(made_vec8(VALUE, j % VEC8S), j);
    }
    let v = half_of(packed_value, j);
    let all = scores[part + 5u * PARTS];
    {
      let weight = select(all.xy, all.zw, query_set * 1u + 0u == 1u);
      total0 += weight;
      even0 = fma(vec4<f32>(weight.x), v, even0);
      odd0 = fma(vec4<f32>(weight.y), v, odd0);
    }
  }
  if ((6u + 1u) * PARTS <= SPLIT_CELLS || part + 6u * PARTS < SPLIT_CELLS) {
    var packed_value = value6;
    if (first + part + 6u * PARTS == newest) {
      packed_value = packed_half(made_vec8(VALUE, j % VEC8S), j);
    }
    let v = half_of(packed_value, j);
    let all = scores[part + 6u * PARTS];
    {
      let weight = select(all.xy, all.zw, query_set * 1u + 0u == 1u);
      total0 += weight;
      even0 = fma(vec4<f32>(weight.x), v, even0);
      odd0 = fma(vec4<f32>(weight.y), v, odd0);
    }
  }
  if ((7u + 1u) * PARTS <= SPLIT_CELLS || part + 7u * PARTS < SPLIT_CELLS) {
    var packed_value = value7;
    if (first + part + 7u * PARTS == newest) {
      packed_value = packed_half(made_vec8(VALUE, j % VEC8S), j);
    }
    let v = half_of(packed_value, j);
    let all = scores[part + 7u * PARTS];
    {
      let weight = select(all.xy, all.zw, query_set * 1u + 0u == 1u);
      total0 += weight;
      even0 = fma(vec4<f32>(weight.x), v, even0);
      odd0 = fma(vec4<f32>(weight.y), v, odd0);
    }
  }
  if (thread < 1u * PARTS * VEC4S) {
    let to0 = part * 4u + 2u * (query_set * 1u + 0u);
    pool[to0 * VEC4S + j] = even0;
    pool[(to0 + 1u) * VEC4S + j] = odd0;
    if (j == 0u) {
      totals[to0] = total0.x;
      totals[to0 + 1u] = total0.y;
    }
  }
  workgroupBarrier();
  if (thread < GROUP * VEC4S) {
    var sum = vec4<f32>(0.0);
    sum += pool[0u * VEC4S + thread];
    sum += pool[4u * VEC4S + thread];
    sum += pool[8u * VEC4S + thread];
    sum += pool[12u * VEC4S + thread];
    sum += pool[16u * VEC4S + thread];
    sum += pool[20u * VEC4S + thread];
    sum += pool[24u * VEC4S + thread];
    sum += pool[28u * VEC4S + thread];
    let query = row * heads + tile.y * GROUP + thread / VEC4S;
    sums[(query * KV_SPLITS + split) * VEC4S + j] = sum;
  }
  if (thread < GROUP) {
    var sum = 0.0;
    sum += totals[0u + thread];
    sum += totals[4u + thread];
    sum += totals[8u + thread];
    sum += totals[12u + thread];
    sum += totals[16u + thread];
    sum += totals[20u + thread];
    sum += totals[24u + thread];
    sum += totals[28u + thread];
    let query = row * heads + tile.y * GROUP + thread;
    stats[query * KV_SPLITS + split] = vec2<f32>(split_peak()[thread], sum);
  }
}
