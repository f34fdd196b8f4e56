// out[r, h] = softmax(q[r, h] . K / sqrt(D)) V over the cells that row r may see.
//
// One workgroup per (key-value head, row): $GROUP query heads share its keys and values. Cells are
// taken in tiles of TILE, one invocation a cell for the scores, then one invocation an output
// element for the weighted sum (softmax carried along the tiles: Milakov & Gimelshein 2018).
// Tiles follow the cell index alone, so the order of every sum is the same for any number of rows.

override HEAD_DIM: u32; // a multiple of 4
override KV_HEADS: u32;
override TABLE_PAGES: u32; // pages per slot in the block table
override SCALE: f32; // 1 / sqrt(HEAD_DIM)

const TILE = 64u;
const NEGATIVE = -3.0e38; // below every score; minus infinity would make NaN of inf - inf

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [rows, KV_HEADS, GROUP, HEAD_DIM / 4]
@group(0) @binding(1) var<storage, read> keys: array<vec4<f32>>; // [pages, KV_HEADS, PAGE, HEAD_DIM / 4]
@group(0) @binding(2) var<storage, read> values: array<f32>; // [pages, KV_HEADS, PAGE, HEAD_DIM]
@group(0) @binding(3) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(4) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(5) var<storage, read_write> out: array<f32>; // [rows, KV_HEADS, GROUP, HEAD_DIM]

var<workgroup> scores: array<f32, TILE * $GROUPu>;
var<workgroup> weights: array<f32, TILE * $GROUPu>;

@compute @workgroup_size(TILE)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let kv_head = tile.x;
  let row = rows[tile.y];
  let query = (tile.y * KV_HEADS + kv_head) * $GROUPu * (HEAD_DIM / 4u);
  let end = visible_end(row);

  //for h in GROUP
  var top$h = NEGATIVE;
  var total$h = 0.0;
  //end
  //for i in OUTS
  var sum$i = 0.0;
  //end

  for (var first = 0u; first < end; first += TILE) {
    let cell = first + thread;
    //for h in GROUP
    var score$h = NEGATIVE;
    //end
    if (cell < end && visible(row, cell)) {
      let page = pages[row.slot * TABLE_PAGES + cell / PAGE];
      let key = ((page * KV_HEADS + kv_head) * PAGE + cell % PAGE) * (HEAD_DIM / 4u);
      //for h in GROUP
      var dot$h = vec4<f32>(0.0);
      //end
      for (var d = 0u; d < HEAD_DIM / 4u; d++) {
        let k = keys[key + d];
        //for h in GROUP
        dot$h = fma(q[query + $hu * (HEAD_DIM / 4u) + d], k, dot$h);
        //end
      }
      //for h in GROUP
      score$h = ((dot$h.x + dot$h.y) + (dot$h.z + dot$h.w)) * SCALE;
      //end
    }
    //for h in GROUP
    scores[$hu * TILE + thread] = score$h;
    //end
    workgroupBarrier();
    //for h in GROUP
    var peak$h = top$h;
    //end
    for (var j = 0u; j < TILE; j++) {
      //for h in GROUP
      peak$h = max(peak$h, scores[$hu * TILE + j]);
      //end
    }
    //for h in GROUP
    let shrink$h = exp(top$h - peak$h);
    top$h = peak$h;
    weights[$hu * TILE + thread] = select(exp(score$h - peak$h), 0.0, score$h == NEGATIVE);
    total$h *= shrink$h;
    //end
    workgroupBarrier();
    //for i in OUTS
    {
      let o = thread + $iu * TILE;
      let h = o / HEAD_DIM;
      //for h in GROUP
      if (h == $hu) { sum$i *= shrink$h; }
      //end
    }
    //end
    let count = min(TILE, end - first);
    for (var j = 0u; j < count; j++) {
      let page = pages[row.slot * TABLE_PAGES + (first + j) / PAGE];
      let value = ((page * KV_HEADS + kv_head) * PAGE + (first + j) % PAGE) * HEAD_DIM;
      //for h in GROUP
      total$h += weights[$hu * TILE + j];
      //end
      //for i in OUTS
      {
        let o = min(thread + $iu * TILE, $GROUPu * HEAD_DIM - 1u);
        sum$i = fma(weights[o / HEAD_DIM * TILE + j], values[value + o % HEAD_DIM], sum$i);
      }
      //end
    }
  }

  //for i in OUTS
  {
    let o = thread + $iu * TILE;
    let h = o / HEAD_DIM;
    var total = 1.0;
    //for h in GROUP
    if (h == $hu) { total = total$h; }
    //end
    if (o < $GROUPu * HEAD_DIM) {
      out[(tile.y * KV_HEADS + kv_head) * $GROUPu * HEAD_DIM + o] = select(0.0, sum$i / total, end > 0u);
    }
  }
  //end
}
