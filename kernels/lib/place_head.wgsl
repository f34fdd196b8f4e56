// Stores one rope pair of a head of q, k or v: q and k are turned, q goes to `out`, k and v to the KV pages.
//
// Pair w of a head is (x[w], x[w + D/2]), Hugging Face's half-split layout; cos and sin are read from a table that the
// host computed in float32 as transformers does.
// The kernel binds `out`, f32 [rows, Q_HEADS, HEAD_DIM].

//#import lib/rows
//#import lib/rope
//#import lib/kv_store

override HEAD_DIM: u32;
override Q_HEADS: u32;
override KV_HEADS: u32;
override TABLE_PAGES: u32; // pages per slot in the block table

@group(0) @binding(3) var<storage, read> rope: array<vec2<f32>>; // [positions, HEAD_DIM / 2]: cos, sin
@group(0) @binding(4) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(5) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(6) var<storage, read_write> keys: array<u32>; // [pages, KV_HEADS, PAGE], rows of a dtype
@group(0) @binding(7) var<storage, read_write> values: array<u32>; // as keys

// Where a pair goes.
struct HeadPlace {
  turn: vec2<f32>, // cos, sin
  row: u32,
  to: u32, // row of the keys or values
  live: bool,
}

// The place of pair w of a head of row r. Heads are numbered through q, k and v.
fn head_place(r: u32, head: u32, w: u32) -> HeadPlace {
  let row = rows[r];
  let turn = rope[row.position * (HEAD_DIM / 2u) + w];
  let page = pages[select(0u, row.slot * TABLE_PAGES + row.cell / PAGE, row.live != 0u)];
  let to = (page * KV_HEADS + (head - min(head, Q_HEADS)) % KV_HEADS) * PAGE + row.cell % PAGE;
  return HeadPlace(turn, r, to, row.live != 0u);
}

fn put_head(place: HeadPlace, head: u32, w: u32, pair: vec2<f32>) {
  put_turned(place, head, w, turned(pair, place.turn), pair);
}

// The same for a pair that is turned already; values are stored as they are.
fn put_turned(place: HeadPlace, head: u32, w: u32, at_place: vec2<f32>, pair: vec2<f32>) {
  if (head < Q_HEADS) {
    let at = (place.row * Q_HEADS + head) * HEAD_DIM + w;
    out[at] = at_place.x;
    out[at + HEAD_DIM / 2u] = at_place.y;
    return;
  }
  if (!place.live) {
    return;
  }
  if (head < Q_HEADS + KV_HEADS) {
    store_key(place.to, w, at_place);
  } else {
    store_value(place.to, w, pair);
  }
}
