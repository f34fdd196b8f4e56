// Flash-decoding: sum, total and peak of softmax(cap(SCALE q . K)) V over one split (64 cells) of keys and values, for
// neighbouring rows of one slot. attention_combine.wgsl adds the splits.
//
// One workgroup per (tile of up to $TILE rows of a slot, $GROUP query heads of one key-value head,
// split): all its queries share each read of keys and values. Queries are numbered row * $GROUP +
// head and come in $QUADS fours, one to a vector component, of which $QUERIES are used. Three steps:
//   scores   $LANES invocations share a cell: lane l sums vec8s l, l + $LANES, ... of q . k, the lanes
//            are added in order of l;
//   weights  exp(score - peak of the split);
//   values   invocation (part, i) sums cells part, part + $PARTS, ... of vec8 i, the parts are added
//            in order. The first $EARLY of its $CELLS cells are read before the scores, the other $LATE after.
// Logical cells go to splits, lanes and parts by their index alone and every sum has one order, so a row
// has the same bits whatever rows are in flight and wherever its cells are stored. A workgroup writes nothing if
// no row sees a cell of its split.
//
// Rows of a tile share the reads of splits whose cells are stored at the same place for all of them. A split
// with cells of a row's path (at most two are) goes to a workgroup for that row alone: one of the
// first $PATH_GROUPS along z, two for each row of the tile. Tiles of one row need none of these.
//
// With a window the others along z begin with the first split that a row of the tile sees: as many as
// the windows of its rows can touch, however long the context is.

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
const THREADS = $THREADSu;
const QUADS = $QUADSu; // ceil(TILE * GROUP / 4)
const LANES = $LANESu; // invocations a cell
const AT_ONCE = THREADS / LANES; // cells in flight; $PASSES times that is SPLIT_CELLS
const PARTS = $PARTSu; // of the split's cells, for the values
const SUMMED = $(2 * SUMMED_QUERIES)u * VEC8S; // fours of the queries whose parts are added at a time
const STRIDE = SPLIT_CELLS + 1u; // odd: lanes write to different banks

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [rows, heads, 2 VEC8S]
@group(0) @binding(1) var<storage, read> keys: array<vec4<u32>>; // [pages, KV_HEADS, PAGE], rows of a dtype
@group(0) @binding(2) var<storage, read> values: array<vec4<u32>>; // as keys
@group(0) @binding(3) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]
@group(0) @binding(4) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(5) var<storage, read_write> sums: array<vec4<f32>>; // [rows, heads, KV_SPLITS, 2 VEC8S]
@group(0) @binding(6) var<storage, read_write> stats: array<vec2<f32>>; // [rows, heads, KV_SPLITS]: peak, total

var<workgroup> pool: array<vec4<f32>, 520>; // [LANES, STRIDE], then [PARTS, SUMMED]
var<workgroup> scores: array<vec4<f32>, QUADS * SPLIT_CELLS>;
var<workgroup> peaks: array<vec4<f32>, QUADS * 8u>; // of 8 cells each
var<workgroup> totals: array<vec4<f32>, QUADS * PARTS>;

//#import lib/stored

fn sees(row: u32, cell: u32) -> bool {
  let own = rows[FIRST_ROW + row];
  return cell >= visible_begin(own) && cell < visible_end(own);
}

fn masked(score: vec4<f32>, seen: vec4<bool>) -> vec4<f32> {
  return select(vec4<f32>(NEGATIVE), score, seen);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  // The workgroup takes `count` rows of `slot` from `row` on, and `split`, whose first cell is `first`. The rows see
  // cells from `begin` up to `end`. `mine` has a bit for each row that is summed here. `alone` says that this is a
  // row's own workgroup, for a split with cells of the row's path.
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
  }
  //#endfor
  if (first >= end || first + SPLIT_CELLS <= begin) {
    return;
  }

  let heads = KV_HEADS * HEAD_TILES * GROUP;
  let lane = thread % LANES;
  let cell = thread / LANES;
  //#for p in PASSES
  var key$p = min(first + cell + $pu * AT_ONCE, end - 1u);
  //#endfor
  let part = thread / VEC8S;
  let i = thread % VEC8S;
  //#for c in CELLS
  var value$c = min(first + part + $cu * PARTS, end - 1u);
  //#endfor
  if (alone) {
    let own = rows[FIRST_ROW + row];
    if (scattered(own, first + SPLIT_CELLS)) {
      //#for p in PASSES
      key$p = physical(own, key$p);
      //#endfor
      //#for c in CELLS
      value$c = physical(own, value$c);
      //#endfor
    }
  }
  //#for p in PASSES
  key$p = stored(slot, kv_head, key$p);
  //#endfor
  //#for c in CELLS
  value$c = stored(slot, kv_head, value$c);
  //#endfor
  //#for j in QUADS
  //#for h in QUERIES
  let query$j_$h = ((row + min((4u * $ju + $hu) / GROUP, count - 1u)) * heads
    + tile.y * GROUP + (4u * $ju + $hu) % GROUP) * (2u * VEC8S);
  //#for p in PASSES
  var dot$j_$p_$h = 0.0;
  //#endfor
  //#endfor
  //#endfor
  //#for s in STEPS
  if (($su + 1u) * LANES <= VEC8S || lane + $su * LANES < VEC8S) {
    let e = lane + $su * LANES;
    //#for p in PASSES
    let k$p = vec8_of(load_key(key$p, e));
    //#endfor
    //#for j in QUADS
    //#for h in QUERIES
    {
      let own = Vec8(q[query$j_$h + e], q[query$j_$h + VEC8S + e]);
      //#for p in PASSES
      dot$j_$p_$h = add8(dot$j_$p_$h, own, k$p);
      //#endfor
    }
    //#endfor
    //#endfor
  }
  //#endfor
  // Values are loaded early where registers allow: the wait is shared with the keys'.
  //#for c in EARLY
  let packed$c = load_value(value$c, i);
  //#endfor

  //#for j in QUADS
  //#for p in PASSES
  //#for h in UNUSED
  let dot$j_$p_$(QUERIES + h) = 0.0;
  //#endfor
  pool[lane * STRIDE + cell + $pu * AT_ONCE] = vec4<f32>(dot$j_$p_0, dot$j_$p_1, dot$j_$p_2, dot$j_$p_3);
  //#endfor
  workgroupBarrier();
  if (thread < SPLIT_CELLS) {
    var score = vec4<f32>(0.0);
    //#for l in LANES
    score += pool[$lu * STRIDE + thread];
    //#endfor
    scores[$ju * SPLIT_CELLS + thread] = masked(capped(score * SCALE), vec4<bool>(
      sees(row + min((4u * $ju) / GROUP, count - 1u), first + thread),
      sees(row + min((4u * $ju + 1u) / GROUP, count - 1u), first + thread),
      sees(row + min((4u * $ju + 2u) / GROUP, count - 1u), first + thread),
      sees(row + min((4u * $ju + 3u) / GROUP, count - 1u), first + thread),
    ));
  }
  workgroupBarrier();
  //#endfor

  if (thread < QUADS * 8u) {
    var peak = scores[thread * 8u];
    //#for c in 8
    peak = max(peak, scores[thread * 8u + $cu]);
    //#endfor
    peaks[thread] = peak;
  }
  workgroupBarrier();
  //#for t in TURNS
  {
    let quad = $tu * (THREADS / SPLIT_CELLS) + thread / SPLIT_CELLS;
    if (quad < QUADS) {
      var peak = peaks[quad * 8u];
      //#for c in 8
      peak = max(peak, peaks[quad * 8u + $cu]);
      //#endfor
      let at = quad * SPLIT_CELLS + thread % SPLIT_CELLS;
      scores[at] = weighted(scores[at], peak);
    }
  }
  //#endfor
  workgroupBarrier();

  //#for c in LATE
  let packed$(EARLY + c) = load_value(value$(EARLY + c), i);
  //#endfor
  //#for j in QUADS
  var total$j = vec4<f32>(0.0);
  //#for h in 4
  var lo$j_$h = vec4<f32>(0.0); // of unused components nothing is added
  var hi$j_$h = vec4<f32>(0.0);
  //#endfor
  //#endfor
  //#for c in CELLS
  if (($cu + 1u) * PARTS <= SPLIT_CELLS || part + $cu * PARTS < SPLIT_CELLS) {
    let v = vec8_of(packed$c);
    //#for j in QUADS
    {
      let weight = scores[$ju * SPLIT_CELLS + part + $cu * PARTS];
      total$j += weight;
      //#for h in QUERIES
      lo$j_$h = fma(vec4<f32>(weight[$h]), v.lo, lo$j_$h);
      hi$j_$h = fma(vec4<f32>(weight[$h]), v.hi, hi$j_$h);
      //#endfor
    }
    //#endfor
  }
  //#endfor

  //#for j in QUADS
  if (i == 0u && part < PARTS) {
    totals[$ju * PARTS + part] = total$j;
  }
  //#for b in SUM_TURNS
  if (part < PARTS) {
    let to = part * SUMMED + i;
    //#for h in SUMMED_QUERIES
    pool[to + $(2 * h)u * VEC8S] = lo$j_$(SUMMED_QUERIES * b + h);
    pool[to + $(2 * h + 1)u * VEC8S] = hi$j_$(SUMMED_QUERIES * b + h);
    //#endfor
  }
  workgroupBarrier();
  //#for o in OUTS
  {
    let o = thread + $ou * THREADS;
    let query = 4u * $ju + $(SUMMED_QUERIES * b)u + o / (2u * VEC8S);
    if (o < SUMMED && ((mine >> (query / GROUP)) & 1u) == 1u) {
      var sum = vec4<f32>(0.0);
      //#for g in PARTS
      sum += pool[$gu * SUMMED + o];
      //#endfor
      let at = ((row + query / GROUP) * heads + tile.y * GROUP + query % GROUP) * KV_SPLITS + split;
      sums[at * (2u * VEC8S) + o % (2u * VEC8S)] = sum;
    }
  }
  //#endfor
  workgroupBarrier();
  //#endfor
  //#endfor

  if (thread < QUADS * 4u && ((mine >> (thread / GROUP)) & 1u) == 1u) {
    let quad = thread / 4u;
    var total = 0.0;
    //#for g in PARTS
    total += totals[quad * PARTS + $gu][thread % 4u];
    //#endfor
    var peak = peaks[quad * 8u];
    //#for c in 8
    peak = max(peak, peaks[quad * 8u + $cu]);
    //#endfor
    let at = (row + thread / GROUP) * heads + tile.y * GROUP + thread % GROUP;
    stats[at * KV_SPLITS + split] = vec2<f32>(peak[thread % 4u], total);
  }
}
