// out[r, h] = softmax(cap(SCALE q[r, h] . K)) V over the cells that row r sees, for small heads on adapters where a
// load or a barrier costs more than arithmetic (software).
//
// One workgroup per (key-value head, tile of up to $TILE rows of a slot): all queries of the rows, $GROUP
// heads each, share each read of a key and a value. Lane l takes cells l, l + LANES, ... with a softmax of
// its own for each query, q and sums in registers ($VEC8S vec8s a head); the lanes are merged in order at
// the end. Logical cells go to lanes by their index alone and every sum has one order, so a row has the same
// bits whatever rows are in flight and wherever the cells of a path are stored.
//
// The cells that lie at the same place for all rows come first; then those of each row's path, for it alone.

//#import lib/rows
//#import lib/soft_cap
//#import lib/visible
//#import lib/kv_load

override KV_HEADS: u32;
override TABLE_PAGES: u32; // pages per slot in the block table
override PER_SLOT: u32; // rows of a slot that follow each other
override PATHS: u32; // 1: rows may have paths; 0: none is looked at
override SCALE: f32; // of scores

const LANES = 8u;
const TILE = $TILEu;
const QUERIES = TILE * $GROUPu;
const QUADS = 2u * VEC8S;
const NEGATIVE = -3.0e38; // below every score; minus infinity would make NaN of inf - inf
const NO_CELL = 0xffffffffu;

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [rows, KV_HEADS, $GROUP, QUADS]
@group(0) @binding(1) var<storage, read> keys: array<vec4<u32>>; // [pages, KV_HEADS, PAGE], rows of a dtype
@group(0) @binding(2) var<storage, read> values: array<vec4<u32>>; // as keys
@group(0) @binding(3) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(4) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
// [rows, KV_HEADS, $GROUP, QUADS]: its size gives the rows
@group(0) @binding(5) var<storage, read_write> out: array<vec4<f32>>;
//#if SINKS
@group(0) @binding(13) var<storage, read> sinks: array<f32>; // [KV_HEADS $GROUP]: a logit without a value
//#endif

var<workgroup> peaks: array<f32, LANES * QUERIES>;
var<workgroup> totals: array<f32, LANES * QUERIES>;
var<workgroup> sums: array<vec4<f32>, LANES * QUERIES * QUADS>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let kv_head = tile.x;
  let tiles = (PER_SLOT + TILE - 1u) / TILE;
  let within = tile.y % tiles * TILE;
  let row = tile.y / tiles * PER_SLOT + within; // first of the tile
  let stride = KV_HEADS * $GROUPu * QUADS;
  let count = min(min(TILE, PER_SLOT - within), arrayLength(&out) / stride - row);
  let query = row * stride + kv_head * $GROUPu * QUADS;

  var slot = 0u;
  var shared_end = NO_CELL; // cells before it lie at the same place for all rows
  //#for r in TILE
  let own$r = rows[row + min($ru, count - 1u)];
  let begin$r = visible_begin(own$r);
  let end$r = select(0u, visible_end(own$r), $ru < count);
  slot = select(slot, own$r.slot, end$r > 0u);
  shared_end = select(shared_end, min(shared_end, own$r.base), PATHS == 1u && end$r > 0u);
  //#for h in GROUP
  var peak$r_$h = NEGATIVE;
  var total$r_$h = 0.0;
  //#for d in VEC8S
  let q_lo$r_$h_$d = q[query + min($ru, count - 1u) * stride + $hu * QUADS + $du];
  let q_hi$r_$h_$d = q[query + min($ru, count - 1u) * stride + $hu * QUADS + VEC8S + $du];
  var lo$r_$h_$d = vec4<f32>(0.0);
  var hi$r_$h_$d = vec4<f32>(0.0);
  //#endfor
  //#endfor
  //#endfor

  for (var turn = 0u; turn <= PATHS * count; turn++) {
    var begin = NO_CELL;
    var end = 0u;
    //#for r in TILE
    // The cells that the row takes in this turn.
    let from$r = select(max(begin$r, shared_end), begin$r, turn == 0u);
    let to$r = select(select(0u, end$r, turn == $ru + 1u), min(end$r, shared_end), turn == 0u);
    begin = select(begin, min(begin, from$r), from$r < to$r);
    end = select(end, max(end, to$r), from$r < to$r);
    //#endfor
    for (var cell = begin + (lane - begin) % LANES; cell < end; cell += LANES) {
      var place = cell;
      if (turn > 0u) {
        place = physical(rows[row + turn - 1u], cell);
      }
      let page = pages[slot * TABLE_PAGES + place / PAGE];
      let at = (page * KV_HEADS + kv_head) * PAGE + place % PAGE;
      //#for r in TILE
      //#for h in GROUP
      var dot$r_$h = vec4<f32>(0.0);
      //#endfor
      //#endfor
      //#for d in VEC8S
      let k$d = vec8_of(load_key(at, $du));
      let v$d = vec8_of(load_value(at, $du));
      //#for r in TILE
      //#for h in GROUP
      dot$r_$h = fma(q_hi$r_$h_$d, k$d.hi, fma(q_lo$r_$h_$d, k$d.lo, dot$r_$h));
      //#endfor
      //#endfor
      //#endfor
      //#for r in TILE
      if (cell >= from$r && cell < to$r) {
        //#for h in GROUP
        let score$h = capped(vec4<f32>(((dot$r_$h.x + dot$r_$h.y) + (dot$r_$h.z + dot$r_$h.w)) * SCALE)).x;
        let top$h = max(peak$r_$h, score$h);
        let shrink$h = exp(peak$r_$h - top$h);
        let weight$h = exp(score$h - top$h);
        peak$r_$h = top$h;
        total$r_$h = fma(total$r_$h, shrink$h, weight$h);
        //#for d in VEC8S
        lo$r_$h_$d = fma(vec4<f32>(weight$h), v$d.lo, lo$r_$h_$d * shrink$h);
        hi$r_$h_$d = fma(vec4<f32>(weight$h), v$d.hi, hi$r_$h_$d * shrink$h);
        //#endfor
        //#endfor
      }
      //#endfor
    }
  }

  //#for r in TILE
  //#for h in GROUP
  peaks[lane * QUERIES + $(r * GROUP + h)u] = peak$r_$h;
  totals[lane * QUERIES + $(r * GROUP + h)u] = total$r_$h;
  //#for d in VEC8S
  sums[(lane * QUERIES + $(r * GROUP + h)u) * QUADS + $du] = lo$r_$h_$d;
  sums[(lane * QUERIES + $(r * GROUP + h)u) * QUADS + VEC8S + $du] = hi$r_$h_$d;
  //#endfor
  //#endfor
  //#endfor
  workgroupBarrier();
  for (var o = lane; o < count * $GROUPu * QUADS; o += LANES) {
    let own = o / QUADS;
    var top = NEGATIVE;
    for (var l = 0u; l < LANES; l++) {
      top = max(top, peaks[l * QUERIES + own]);
    }
    var total = 0.0;
    var sum = vec4<f32>(0.0);
    for (var l = 0u; l < LANES; l++) {
      let share = exp(peaks[l * QUERIES + own] - top);
      total = fma(totals[l * QUERIES + own], share, total);
      sum = fma(sums[l * QUERIES * QUADS + o], vec4<f32>(share), sum);
    }
    let r = own / $GROUPu;
    //#if SINKS
    total += exp(min(sinks[kv_head * $GROUPu + own % $GROUPu] - top, 80.0));
    //#endif
    out[query + r * stride + o % ($GROUPu * QUADS)] =
      select(vec4<f32>(0.0), sum / total, visible_end(rows[row + r]) > 0u);
  }
}
