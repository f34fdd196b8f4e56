// Where one rope pair of a head of q, k or v goes: q and k are turned, k and v stored in the pages.
//
// Pair w of a head: (a, b) = (x[w], x[w + D/2]) -> (a cos - b sin, b cos + a sin), Hugging Face's
// half-split layout; cos and sin come from a table the host computed in float32 as transformers does.
// The file that uses this binds `out`, [rows, Q_HEADS, HEAD_DIM] of f32. Slot:
//   kv_store: `fn store_key(row, w, pair)` and `store_value`, of a dtype (kv_store_*.wgsl).

//use fragments/rows
//use kv_store

override HEAD_DIM: u32;
override Q_HEADS: u32;
override KV_HEADS: u32;
override TABLE_PAGES: u32; // pages per slot in the block table

@group(0) @binding(3) var<storage, read> rope: array<vec2<f32>>; // [positions, HEAD_DIM / 2]: cos, sin
@group(0) @binding(4) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(5) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(6) var<storage, read_write> keys: array<u32>; // [pages, KV_HEADS, PAGE], rows of a dtype
@group(0) @binding(7) var<storage, read_write> values: array<u32>; // as keys

// `head` counts through q, k and v.
fn place_head(r: u32, head: u32, w: u32, pair: vec2<f32>) {
  let row = rows[r];
  let turn = rope[row.position * (HEAD_DIM / 2u) + w];
  let turned = vec2<f32>(
    fma(pair.x, turn.x, -(pair.y * turn.y)),
    fma(pair.y, turn.x, pair.x * turn.y),
  );
  if (head < Q_HEADS) {
    let to = (r * Q_HEADS + head) * HEAD_DIM + w;
    out[to] = turned.x;
    out[to + HEAD_DIM / 2u] = turned.y;
    return;
  }
  if (row.live == 0u) {
    return;
  }
  let page = pages[row.slot * TABLE_PAGES + row.cell / PAGE];
  let to = (page * KV_HEADS + (head - Q_HEADS) % KV_HEADS) * PAGE + row.cell % PAGE;
  if (head < Q_HEADS + KV_HEADS) {
    store_key(to, w, turned);
  } else {
    store_value(to, w, pair);
  }
}
