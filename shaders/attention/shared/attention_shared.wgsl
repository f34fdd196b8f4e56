// What attention.wgsl makes, to the bit, where there are workgroups enough without one for each row: 16 queries
// share each read of keys and values.
//
// One workgroup per (tile of up to $TILE rows of a slot, $GROUP query heads of one key-value head, split), numbered as
// there. Queries are numbered row * $GROUP + head and come in $QUADS fours. Three steps:
//   scores   $LANES invocations share a cell and keep its key; they make dots of one four of queries after the other,
//            which an invocation a cell adds in order of the lanes;
//   weights  exp(score - peak of the split);
//   values   invocation (band, i) makes $EACH queries of vec4 i; cells pass through workgroup memory in the order of the
//            parts of attention.wgsl, each part is added apart.
//
// Rows with paths have workgroups as in attention.wgsl. The slot is that of attention/paged.wgsl.

//use attention/paged
//use attention/split

override KV_SPLITS: u32; // of a whole block table
override PATHS: u32; // 1: rows may have paths; 0: none is looked at

const PATH_GROUPS = $PATH_GROUPSu; // workgroups along z before those of all splits, with PATHS
const THREADS = 128u;
const QUADS = $QUADSu;
const QUERIES = 4u * QUADS;
const LANES = $LANESu; // invocations a cell
const AT_ONCE = THREADS / LANES; // cells in flight; $PASSES times that is SPLIT_CELLS
const PARTS = $PARTSu; // of the split's cells, for the values
const CELLS = $CELLSu; // of a part
const BROUGHT = $BROUGHTu; // cells of values in a stage
const VEC4S = 2u * VEC8S;

@group(0) @binding(5) var<storage, read_write> sums: array<vec4<f32>>; // [rows, heads, KV_SPLITS, VEC4S]
@group(0) @binding(6) var<storage, read_write> stats: array<vec2<f32>>; // [rows, heads, KV_SPLITS]: peak, total

// Dots, [LANES, SPLIT_CELLS]; then scores, [QUADS, SPLIT_CELLS], and behind them a stage of values, [4, 64]. With less
// than 12 KiB four workgroups have room on one of NVIDIA's multiprocessors. Lines have a type of their own, so that
// places in them are constants which no check of bounds makes longer.
var<workgroup> pool: array<array<vec4<f32>, 65>, 8>;
var<workgroup> asked: array<array<vec4<f32>, VEC4S>, 4>; // four queries
var<workgroup> peaks: array<array<vec4<f32>, 8>, QUADS>; // each of 8 cells
var<workgroup> totals: array<array<f32, PARTS>, QUERIES>;
var<workgroup> seen: array<vec2<u32>, $TILE>; // of each row the first cell and one past the last
var<workgroup> places: array<u32, SPLIT_CELLS>; // rows of keys and values

// Number n in the order in which cells are added.
fn cell_at(n: u32) -> u32 {
  return n / CELLS + n % CELLS * PARTS;
}

fn sees(query: u32, cell: u32) -> bool {
  let of_row = seen[min(query / GROUP, TILE - 1u)];
  return cell >= of_row.x && cell < of_row.y;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let tiles = (PER_SLOT + TILE - 1u) / TILE;
  let within = tile.x % tiles * TILE;
  var row = tile.x / tiles * PER_SLOT + within;
  var count = min(TILE, PER_SLOT - within);
  let before = PATHS * PATH_GROUPS;
  var split = tile.z - before;
  if (WINDOW != 0xffffffffu) {
    var earliest = 0xffffffffu;
    //for r in TILE
    {
      let own = rows[FIRST_ROW + row + min($ru, count - 1u)];
      earliest = select(earliest, min(earliest, visible_begin(own)), own.live == 1u);
    }
    //end
    split += select(earliest / SPLIT_CELLS, 0u, earliest == 0xffffffffu);
  }
  let alone = PATHS == 1u && tile.z < before;
  if (alone) {
    if (tile.z / 2u >= count) {
      return;
    }
    row += tile.z / 2u;
    count = 1u;
    split = rows[FIRST_ROW + row].base / SPLIT_CELLS + tile.z % 2u;
  }
  let kv_head = tile.y / HEAD_TILES;
  let heads = KV_HEADS * HEAD_TILES * GROUP;
  let first = split * SPLIT_CELLS;

  var slot = 0u;
  var begin = 0xffffffffu;
  var end = 0u;
  var mine = 0u; // bit r: row r is summed here
  //for r in TILE
  {
    let own = rows[FIRST_ROW + row + min($ru, count - 1u)];
    let elsewhere = PATHS == 1u && scattered(own, first + SPLIT_CELLS) != alone;
    let here = own.live == 1u && $ru < count && !elsewhere;
    slot = select(slot, own.slot, here);
    begin = select(begin, min(begin, visible_begin(own)), here);
    end = select(end, max(end, visible_end(own)), here);
    mine |= u32(here) << $ru;
    if (thread == $ru) {
      seen[thread] = vec2<u32>(visible_begin(own), visible_end(own));
    }
  }
  //end
  if (first >= end || first + SPLIT_CELLS <= begin) {
    return;
  }
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
  let own_cell = thread % SPLIT_CELLS;
  let brings = thread / VEC8S; // cell of a stage
  let i = thread % VEC8S;
  //for f in QUADS
  //for b in Q_LOADS
  let ask$f_$b = min(thread + $bu * THREADS, 4u * VEC4S - 1u);
  let query$f_$b = min(4u * $fu + ask$f_$b / VEC4S, count * GROUP - 1u);
  let own$f_$b = q[((row + query$f_$b / GROUP) * heads + tile.y * GROUP + query$f_$b % GROUP) * VEC4S + ask$f_$b % VEC4S];
  //end
  //end
  //for p in PASSES
  let key$p = places[cell + $pu * AT_ONCE];
  //for s in STEPS
  let k$p_$s = vec8_of(load_key(key$p, lane + $su * LANES));
  //end
  //end
  // Asked for early: the wait is shared with the keys'.
  //for s in STAGES
  let value$s = load_value(places[cell_at($su * BROUGHT + brings)], i);
  //end

  //for f in QUADS
  //for b in Q_LOADS
  asked[ask$f_$b / VEC4S][ask$f_$b % VEC4S] = own$f_$b;
  //end
  workgroupBarrier();
  if (4u * $fu / GROUP < count) {
    //for h in FOUR
    //for p in PASSES
    var dot$p_$h = 0.0;
    //end
    //for s in STEPS
    {
      let own = Vec8(asked[$h][lane + $su * LANES], asked[$h][VEC8S + lane + $su * LANES]);
      //for p in PASSES
      dot$p_$h = add8(dot$p_$h, own, k$p_$s);
      //end
    }
    //end
    //end
    //for p in PASSES
    pool[lane][cell + $pu * AT_ONCE] = vec4<f32>(dot$p_0, dot$p_1, dot$p_2, dot$p_3);
    //end
  }
  workgroupBarrier();
  var kept$f = vec4<f32>(0.0); // by one half of the invocations
  if (thread / SPLIT_CELLS == $fu % 2u) {
    var score = vec4<f32>(0.0);
    //for l in LANES
    score += pool[$l][own_cell];
    //end
    kept$f = select(vec4<f32>(NEGATIVE), capped(score * SCALE), vec4<bool>(
      sees(4u * $fu, first + own_cell),
      sees(4u * $fu + 1u, first + own_cell),
      sees(4u * $fu + 2u, first + own_cell),
      sees(4u * $fu + 3u, first + own_cell),
    ));
  }
  //end
  workgroupBarrier();
  //for f in QUADS
  if (thread / SPLIT_CELLS == $fu % 2u) {
    pool[$f][own_cell] = kept$f;
  }
  //end
  workgroupBarrier();

  if (thread < QUADS * 8u) {
    var peak = pool[thread / 8u][thread % 8u];
    //for c in EIGHT
    peak = max(peak, pool[thread / 8u][$cu * 8u + thread % 8u]);
    //end
    peaks[thread / 8u][thread % 8u] = peak;
  }
  workgroupBarrier();
  let weighs = thread / (THREADS / QUADS);
  var peak = peaks[weighs][0];
  //for c in EIGHT
  peak = max(peak, peaks[weighs][$c]);
  //end
  //for t in TURNS
  {
    let at = $tu * (THREADS / QUADS) + thread % (THREADS / QUADS);
    pool[weighs][at] = weighted(pool[weighs][at], peak);
  }
  //end
  if (thread < QUERIES) {
    peak = peaks[thread / 4u][0];
    //for c in EIGHT
    peak = max(peak, peaks[thread / 4u][$c]);
    //end
  }
  workgroupBarrier();

  for (var o = thread; o < QUERIES * PARTS; o += THREADS) {
    let query = o / PARTS;
    var total = 0.0;
    //for c in CELLS
    total += pool[query / 4u][o % PARTS + $cu * PARTS][query % 4u];
    //end
    totals[query][o % PARTS] = total;
  }
  let band = thread / VEC4S;
  let j = thread % VEC4S;
  let awake = band * $EACHu / GROUP < count;
  let to = brings * VEC4S; // within a stage
  //for h in EACH
  var sum$h = vec4<f32>(0.0);
  var part$h = vec4<f32>(0.0);
  //end
  //for s in STAGES
  {
    let brought = vec8_of(value$s);
    workgroupBarrier();
    pool[4u + to / 64u][to % 64u + i] = brought.lo;
    pool[4u + to / 64u][to % 64u + VEC8S + i] = brought.hi;
    workgroupBarrier();
    if (awake) {
      //for c in BROUGHT
      {
        const at = $cu * VEC4S;
        const line = $(s * BROUGHT + c)u / CELLS + $(s * BROUGHT + c)u % CELLS * PARTS;
        let v = pool[4u + at / 64u][at % 64u + j];
        //for f in EACH_QUADS
        let weight$f = pool[band * $EACH_QUADSu + $fu][line];
        //for h in FOUR
        part$(f * FOUR + h) = fma(vec4<f32>(weight$f[$h]), v, part$(f * FOUR + h));
        //end
        //end
        //for h in EACH_ALONE
        let alone$h = pool[(band * $EACHu + $hu) / 4u][line][(band * $EACHu + $hu) % 4u];
        part$h = fma(vec4<f32>(alone$h), v, part$h);
        //end
      }
      if ($(s * BROUGHT + c + 1)u % CELLS == 0u) {
        //for h in EACH
        sum$h += part$h;
        part$h = vec4<f32>(0.0);
        //end
      }
      //end
    }
  }
  //end

  //for h in EACH
  {
    let query = band * $EACHu + $hu;
    if (((mine >> (query / GROUP)) & 1u) == 1u) {
      let at = ((row + query / GROUP) * heads + tile.y * GROUP + query % GROUP) * KV_SPLITS + split;
      sums[at * VEC4S + j] = sum$h;
    }
  }
  //end
  if (thread < QUERIES && ((mine >> (thread / GROUP)) & 1u) == 1u) {
    var total = 0.0;
    //for g in PARTS
    total += totals[thread][$g];
    //end
    let at = (row + thread / GROUP) * heads + tile.y * GROUP + thread % GROUP;
    stats[at * KV_SPLITS + split] = vec2<f32>(peak[thread % 4u], total);
  }
}
