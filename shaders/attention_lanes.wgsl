// out[r, h] = softmax(q[r, h] . K / sqrt(D)) V over the cells that row r may see: the variant for
// adapters where a load or a barrier costs more than arithmetic (software), and small heads.
//
// One workgroup per (key-value head, row): $GROUP query heads share its keys and values. Lane l
// takes cells l, l + LANES, ... with a softmax of its own, q and sums in registers ($QUADS vec4 a
// head); the lanes are combined in order at the end. Cells go to lanes by their index alone, so
// the order of every sum is the same for any number of rows.

override HEAD_DIM: u32; // 4 * $QUADS
override KV_HEADS: u32;
override TABLE_PAGES: u32; // pages per slot in the block table
override SCALE: f32; // 1 / sqrt(HEAD_DIM)

const LANES = 8u;
const NEGATIVE = -3.0e38; // below every score; minus infinity would make NaN of inf - inf

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [rows, KV_HEADS, GROUP, QUADS]
@group(0) @binding(1) var<storage, read> keys: array<vec4<f32>>; // [pages, KV_HEADS, PAGE, QUADS]
@group(0) @binding(2) var<storage, read> values: array<vec4<f32>>; // [pages, KV_HEADS, PAGE, QUADS]
@group(0) @binding(3) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(4) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(5) var<storage, read_write> out: array<f32>; // [rows, KV_HEADS, GROUP, HEAD_DIM]

var<workgroup> peaks: array<f32, LANES * $GROUPu>;
var<workgroup> totals: array<f32, LANES * $GROUPu>;
var<workgroup> sums: array<vec4<f32>, LANES * $GROUPu * $QUADSu>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let kv_head = tile.x;
  let row = rows[tile.y];
  let end = visible_end(row);
  let query = (tile.y * KV_HEADS + kv_head) * $GROUPu * $QUADSu;
  //for h in GROUP
  var peak$h = NEGATIVE;
  var total$h = 0.0;
  //for d in QUADS
  let q$h_$d = q[query + $hu * $QUADSu + $du];
  var sum$h_$d = vec4<f32>(0.0);
  //end
  //end

  for (var cell = lane; cell < end; cell += LANES) {
    if (!visible(row, cell)) {
      continue;
    }
    let page = pages[row.slot * TABLE_PAGES + cell / PAGE];
    let at = ((page * KV_HEADS + kv_head) * PAGE + cell % PAGE) * $QUADSu;
    //for h in GROUP
    var dot$h = vec4<f32>(0.0);
    //end
    //for d in QUADS
    let k$d = keys[at + $du];
    let v$d = values[at + $du];
    //for h in GROUP
    dot$h = fma(q$h_$d, k$d, dot$h);
    //end
    //end
    //for h in GROUP
    let score$h = ((dot$h.x + dot$h.y) + (dot$h.z + dot$h.w)) * SCALE;
    let top$h = max(peak$h, score$h);
    let shrink$h = exp(peak$h - top$h);
    let weight$h = exp(score$h - top$h);
    peak$h = top$h;
    total$h = fma(total$h, shrink$h, weight$h);
    //for d in QUADS
    sum$h_$d = fma(vec4<f32>(weight$h), v$d, sum$h_$d * shrink$h);
    //end
    //end
  }

  //for h in GROUP
  peaks[lane * $GROUPu + $hu] = peak$h;
  totals[lane * $GROUPu + $hu] = total$h;
  //for d in QUADS
  sums[(lane * $GROUPu + $hu) * $QUADSu + $du] = sum$h_$d;
  //end
  //end
  workgroupBarrier();
  for (var o = lane; o < $GROUPu * $QUADSu; o += LANES) {
    let h = o / $QUADSu;
    var top = NEGATIVE;
    for (var l = 0u; l < LANES; l++) {
      top = max(top, peaks[l * $GROUPu + h]);
    }
    var total = 0.0;
    var sum = vec4<f32>(0.0);
    for (var l = 0u; l < LANES; l++) {
      let share = exp(peaks[l * $GROUPu + h] - top);
      total = fma(totals[l * $GROUPu + h], share, total);
      sum = fma(sums[l * $GROUPu * $QUADSu + o], vec4<f32>(share), sum);
    }
    let mixed = select(vec4<f32>(0.0), sum / total, end > 0u);
    let first = (query + o) * 4u;
    for (var i = 0u; i < 4u; i++) {
      out[first + i] = mixed[i];
    }
  }
}
