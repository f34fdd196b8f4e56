// out[r, h] = softmax(cap(SCALE q[r, h] . K)) V over the cells that row r may see: the variant for
// adapters where a load or a barrier costs more than arithmetic (software), and small heads.
//
// One workgroup per (key-value head, row): $GROUP query heads share its keys and values. Lane l
// takes cells l, l + LANES, ... with a softmax of its own, q and sums in registers ($VEC8S vec8s a
// head); the lanes are combined in order at the end. Logical cells go to lanes by their index alone, so
// the order of every sum is the same for any number of rows and wherever the cells of a path are stored.
//
// Slot:
//   kv_load: `load_key`, `load_value` and `vec8_of` of a dtype (kv/load_*.wgsl), over `keys` and `values`.

//use fragments/rows
//use fragments/soft_cap
//use attention/visible
//use kv_load

override KV_HEADS: u32;
override TABLE_PAGES: u32; // pages per slot in the block table
override PATHS: u32; // 1: rows may have paths; 0: none is looked at
override SCALE: f32; // of scores

const LANES = 8u;
const QUADS = 2u * VEC8S;
const NEGATIVE = -3.0e38; // below every score; minus infinity would make NaN of inf - inf

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [rows, KV_HEADS, $GROUP, QUADS]
@group(0) @binding(1) var<storage, read> keys: array<vec4<u32>>; // [pages, KV_HEADS, PAGE], rows of a dtype
@group(0) @binding(2) var<storage, read> values: array<vec4<u32>>; // as keys
@group(0) @binding(3) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(4) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(5) var<storage, read_write> out: array<vec4<f32>>; // [rows, KV_HEADS, $GROUP, QUADS]

var<workgroup> peaks: array<f32, LANES * $GROUPu>;
var<workgroup> totals: array<f32, LANES * $GROUPu>;
var<workgroup> sums: array<vec4<f32>, LANES * $GROUPu * QUADS>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let kv_head = tile.x;
  let row = rows[tile.y];
  let end = visible_end(row);
  let query = (tile.y * KV_HEADS + kv_head) * $GROUPu * QUADS;
  //for h in GROUP
  var peak$h = NEGATIVE;
  var total$h = 0.0;
  //for d in VEC8S
  let q_lo$h_$d = q[query + $hu * QUADS + $du];
  let q_hi$h_$d = q[query + $hu * QUADS + VEC8S + $du];
  var lo$h_$d = vec4<f32>(0.0);
  var hi$h_$d = vec4<f32>(0.0);
  //end
  //end

  let begin = visible_begin(row);
  for (var cell = begin + (lane - begin) % LANES; cell < end; cell += LANES) {
    var place = cell;
    if (PATHS == 1u) {
      place = physical(row, cell);
    }
    let page = pages[row.slot * TABLE_PAGES + place / PAGE];
    let at = (page * KV_HEADS + kv_head) * PAGE + place % PAGE;
    //for h in GROUP
    var dot$h = vec4<f32>(0.0);
    //end
    //for d in VEC8S
    let k$d = vec8_of(load_key(at, $du));
    let v$d = vec8_of(load_value(at, $du));
    //for h in GROUP
    dot$h = fma(q_hi$h_$d, k$d.hi, fma(q_lo$h_$d, k$d.lo, dot$h));
    //end
    //end
    //for h in GROUP
    let score$h = capped(vec4<f32>(((dot$h.x + dot$h.y) + (dot$h.z + dot$h.w)) * SCALE)).x;
    let top$h = max(peak$h, score$h);
    let shrink$h = exp(peak$h - top$h);
    let weight$h = exp(score$h - top$h);
    peak$h = top$h;
    total$h = fma(total$h, shrink$h, weight$h);
    //for d in VEC8S
    lo$h_$d = fma(vec4<f32>(weight$h), v$d.lo, lo$h_$d * shrink$h);
    hi$h_$d = fma(vec4<f32>(weight$h), v$d.hi, hi$h_$d * shrink$h);
    //end
    //end
  }

  //for h in GROUP
  peaks[lane * $GROUPu + $hu] = peak$h;
  totals[lane * $GROUPu + $hu] = total$h;
  //for d in VEC8S
  sums[(lane * $GROUPu + $hu) * QUADS + $du] = lo$h_$d;
  sums[(lane * $GROUPu + $hu) * QUADS + VEC8S + $du] = hi$h_$d;
  //end
  //end
  workgroupBarrier();
  for (var o = lane; o < $GROUPu * QUADS; o += LANES) {
    let h = o / QUADS;
    var top = NEGATIVE;
    for (var l = 0u; l < LANES; l++) {
      top = max(top, peaks[l * $GROUPu + h]);
    }
    var total = 0.0;
    var sum = vec4<f32>(0.0);
    for (var l = 0u; l < LANES; l++) {
      let share = exp(peaks[l * $GROUPu + h] - top);
      total = fma(totals[l * $GROUPu + h], share, total);
      sum = fma(sums[l * $GROUPu * QUADS + o], vec4<f32>(share), sum);
    }
    out[query + o] = select(vec4<f32>(0.0), sum / total, end > 0u);
  }
}
