// Sum, total and peak of softmax(cap(SCALE q . K)) V over one split (64 cells) of keys and values, to the bit those of
// attention.wgsl, for up to $QUERIES queries, which share each read of keys and values. Its code is short, since the
// code of all kernels of a layer shares an instruction cache: loops go over the queries.
//
// One workgroup per (tile of up to $TILE rows of a slot, $GROUP query heads of one key-value head, split), numbered as
// there; queries are numbered row * $GROUP + head. Three steps:
//   scores   invocation (cell, lane) holds that lane's vec8s of the keys of cells cell, cell + 16, ... and computes
//            their products with two queries at a time, which pass through workgroup memory; one invocation a score
//            adds the lanes in order;
//   weights  exp(score - peak of the split), one invocation for each part of the cells of a query;
//   values   invocation (part, i) holds vec8 i of the values of that part's cells and sums them for one query at a
//            time; one invocation a number adds the parts in order.
//
// Rows with paths have workgroups as in attention.wgsl.

//#import lib/rows
//#import lib/visible
//#import lib/kv_load
//#import lib/attention_split

override KV_HEADS: u32;
override HEAD_TILES: u32; // workgroups that share a key-value head
override TABLE_PAGES: u32; // pages per slot in the block table
override PER_SLOT: u32; // rows of one slot that follow each other
override FIRST_ROW: u32; // of `rows`
override SCALE: f32; // of scores
override KV_SPLITS: u32; // of a whole block table
override PATHS: u32; // 1: rows may have paths; 0: none is looked at

const GROUP = $GROUPu; // query heads of a workgroup
const TILE = $TILEu; // rows of a workgroup
const PATH_GROUPS = $PATH_GROUPSu; // workgroups along z before those of all splits, with PATHS
const THREADS = 128u;
const QUERIES = $QUERIESu;
const LANES = $LANESu; // of attention.wgsl: lane l has vec8s l, l + LANES, ...
const PARTS = $PARTSu; // of attention.wgsl: part p has cells p, p + PARTS, ...
const CELLS = $CELLSu; // of a part
const COLUMNS = 16u; // of a query's dots: column c has cells c, c + 16, c + 32 and c + 48
const VEC4S = 2u * VEC8S;
const HEAD_DIM = 8u * VEC8S;
const LOADED = THREADS / VEC4S; // queries that are loaded at a time

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [rows, heads, 2 VEC8S]
@group(0) @binding(1) var<storage, read> keys: array<vec4<u32>>; // [pages, KV_HEADS, PAGE], rows of a dtype
@group(0) @binding(2) var<storage, read> values: array<vec4<u32>>; // as keys
@group(0) @binding(3) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]
@group(0) @binding(4) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(5) var<storage, read_write> sums: array<f32>; // [rows, heads, KV_SPLITS, HEAD_DIM]
@group(0) @binding(6) var<storage, read_write> stats: array<vec2<f32>>; // [rows, heads, KV_SPLITS]: peak, total

// Line l: columns of lane l of two queries; then an eighth of what the parts of a query are. An odd number of vec4s:
// lines begin in different banks. Fewer than 12 KiB in all: four workgroups have room on one of NVIDIA's
// multiprocessors.
var<workgroup> pool: array<array<vec4<f32>, 33>, 8>;
var<workgroup> scores: array<array<array<f32, 4>, COLUMNS>, QUERIES>; // then weights
var<workgroup> peaks: array<array<f32, PARTS>, QUERIES>;
var<workgroup> totals: array<array<f32, PARTS>, QUERIES>;
var<workgroup> loaded: array<array<vec4<f32>, VEC4S>, LOADED>; // queries
var<workgroup> seen: array<vec2<u32>, TILE>; // of each row the first cell and one past the last
var<workgroup> places: array<u32, SPLIT_CELLS>; // rows of keys and values

//#import lib/stored

// Four scores or weights of a query: those of a column's cells.
fn four(query: u32, column: u32) -> vec4<f32> {
  let line = &scores[query][column];
  return vec4<f32>((*line)[0], (*line)[1], (*line)[2], (*line)[3]);
}

// The index of a query among those of all rows, `first` being that of the workgroup's first query.
fn number_of(first: u32, query: u32) -> u32 {
  return first + query / GROUP * (KV_HEADS * HEAD_TILES * GROUP) + query % GROUP;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  // As in attention.wgsl, the workgroup takes `count` rows of `slot` from `row` on, and `split`, whose first cell is
  // `first`. The rows see cells from `begin` up to `end`. `mine` has a bit for each row that is summed here. `alone`
  // says that this is a row's own workgroup, for a split with cells of the row's path.
  let tiles = (PER_SLOT + TILE - 1u) / TILE;
  let within = tile.x % tiles * TILE;
  var row = tile.x / tiles * PER_SLOT + within;
  var count = min(TILE, PER_SLOT - within);
  let before = PATHS * PATH_GROUPS;
  var split = tile.z - before;
  if (WINDOW != 0xffffffffu) {
    var earliest = 0xffffffffu;
    //#for r in TILE
    {
      let own = rows[FIRST_ROW + row + min($ru, count - 1u)];
      earliest = select(earliest, min(earliest, visible_begin(own)), own.live == 1u);
    }
    //#endfor
    split += select(earliest / SPLIT_CELLS, 0u, earliest == 0xffffffffu);
  }
  let alone = PATHS == 1u && (TILE == 1u || tile.z < before);
  if (tile.z < before) {
    if (tile.z / 2u >= count) {
      return;
    }
    row += tile.z / 2u;
    count = 1u;
    split = rows[FIRST_ROW + row].base / SPLIT_CELLS + tile.z % 2u;
  }
  let kv_head = tile.y / HEAD_TILES;
  let first = split * SPLIT_CELLS;

  var slot = 0u;
  var begin = 0xffffffffu;
  var end = 0u;
  var mine = 0u; // bit r: row r is summed here
  //#for r in TILE
  {
    let own = rows[FIRST_ROW + row + min($ru, count - 1u)];
    let elsewhere = PATHS == 1u && TILE > 1u && scattered(own, first + SPLIT_CELLS) != alone;
    let here = own.live == 1u && $ru < count && !elsewhere;
    slot = select(slot, own.slot, here);
    begin = select(begin, min(begin, visible_begin(own)), here);
    end = select(end, max(end, visible_end(own)), here);
    mine |= u32(here) << $ru;
    if (thread == $ru) {
      seen[thread] = vec2<u32>(visible_begin(own), visible_end(own));
    }
  }
  //#endfor
  if (first >= end || first + SPLIT_CELLS <= begin) {
    return;
  }

  let first_query = row * (KV_HEADS * HEAD_TILES * GROUP) + tile.y * GROUP;
  if (thread < SPLIT_CELLS) {
    var place = min(first + thread, end - 1u);
    if (alone) {
      place = physical(rows[FIRST_ROW + row], place);
    }
    places[thread] = stored(slot, kv_head, place);
  }
  workgroupBarrier();

  let lane = thread % LANES;
  let cell = thread / LANES;
  //#for p in PASSES
  //#for s in STEPS
  let k$p_$s = vec8_of(load_key(places[cell + $pu * COLUMNS], lane + $su * LANES));
  //#endfor
  //#endfor

  let queries = count * GROUP;
  let loads = thread / VEC4S; // which query of those it loads
  let j = thread % VEC4S;
  var own = q[number_of(first_query, min(loads, queries - 1u)) * VEC4S + j];
  for (var pair = 0u; pair < queries; pair += 2u) {
    if (pair % LOADED == 0u) {
      loaded[loads][j] = own;
      workgroupBarrier();
      own = q[number_of(first_query, min(pair + LOADED + loads, queries - 1u)) * VEC4S + j];
    }
    //#for u in 2
    //#for p in PASSES
    var dot$u_$p = 0.0;
    //#endfor
    //#for s in STEPS
    {
      let of_lane = Vec8(
        loaded[pair % LOADED + $uu][lane + $su * LANES],
        loaded[pair % LOADED + $uu][VEC8S + lane + $su * LANES],
      );
      //#for p in PASSES
      dot$u_$p = add8(dot$u_$p, of_lane, k$p_$s);
      //#endfor
    }
    //#endfor
    //#endfor
    workgroupBarrier();
    //#for u in 2
    pool[lane][$uu * COLUMNS + cell] = vec4<f32>(dot$u_0, dot$u_1, dot$u_2, dot$u_3);
    //#endfor
    workgroupBarrier();
    var score = 0.0;
    //#for l in LANES
    score += pool[$l][thread / 4u][thread % 4u];
    //#endfor
    let query = pair + thread / SPLIT_CELLS;
    let column = thread / 4u % COLUMNS;
    let at = first + column + thread % 4u * COLUMNS;
    let sight = seen[min(query / GROUP, TILE - 1u)];
    let kept = capped(vec4<f32>(score * SCALE)).x;
    scores[query][column][thread % 4u] = select(NEGATIVE, kept, at >= sight.x && at < sight.y);
  }
  let part = thread / VEC8S;
  let i = thread % VEC8S;
  //#for c in CELLS
  let v$c = vec8_of(load_value(places[part + $cu * PARTS], i));
  //#endfor
  workgroupBarrier();

  //#for t in TURNS
  let query$t = (thread + $tu * THREADS) / PARTS;
  let part$t = (thread + $tu * THREADS) % PARTS;
  //#for b in LINES
  let score$t_$b = four(query$t, part$t + $bu * PARTS);
  //#endfor
  var top$t = score$t_0;
  //#for b in LINES
  top$t = max(top$t, score$t_$b);
  //#endfor
  peaks[query$t][part$t] = max(max(top$t.x, top$t.y), max(top$t.z, top$t.w));
  //#endfor
  workgroupBarrier();
  //#for t in TURNS
  {
    var peak = NEGATIVE;
    //#for g in PARTS
    peak = max(peak, peaks[query$t][$g]);
    //#endfor
    //#for b in LINES
    let weight$b = weighted(score$t_$b, vec4<f32>(peak));
    scores[query$t][part$t + $bu * PARTS] =
      array<f32, 4>(weight$b.x, weight$b.y, weight$b.z, weight$b.w);
    //#endfor
    var total = 0.0;
    //#for k in 4
    //#for b in LINES
    total += weight$b[$k];
    //#endfor
    //#endfor
    totals[query$t][part$t] = total;
  }
  //#endfor
  workgroupBarrier();

  for (var query = 0u; query < queries; query++) {
    var lo = vec4<f32>(0.0);
    var hi = vec4<f32>(0.0);
    //#for b in LINES
    let weight$b = four(query, part + $bu * PARTS);
    //#endfor
    //#for k in 4
    //#for b in LINES
    lo = fma(vec4<f32>(weight$b[$k]), v$(k * LINES + b).lo, lo);
    hi = fma(vec4<f32>(weight$b[$k]), v$(k * LINES + b).hi, hi);
    //#endfor
    //#endfor
    let to = part * VEC4S + i;
    workgroupBarrier();
    pool[to / 32u][to % 32u] = lo;
    pool[(to + VEC8S) / 32u][(to + VEC8S) % 32u] = hi;
    workgroupBarrier();
    if (thread < HEAD_DIM && ((mine >> (query / GROUP)) & 1u) == 1u) {
      var sum = 0.0;
      //#for g in PARTS
      sum += pool[($gu * VEC4S) / 32u][($gu * VEC4S) % 32u + thread / 4u][thread % 4u];
      //#endfor
      sums[(number_of(first_query, query) * KV_SPLITS + split) * HEAD_DIM + thread] = sum;
    }
  }
  if (thread < QUERIES && ((mine >> (thread / GROUP)) & 1u) == 1u) {
    var total = 0.0;
    var peak = NEGATIVE;
    //#for g in PARTS
    total += totals[thread][$g];
    peak = max(peak, peaks[thread][$g]);
    //#endfor
    stats[number_of(first_query, thread) * KV_SPLITS + split] = vec2<f32>(peak, total);
  }
}
