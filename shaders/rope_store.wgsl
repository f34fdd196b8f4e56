// Rotates q and k by their position and stores k and v in the sequence's pages.
//
// Pair i of a head: (a, b) = (x[i], x[i + D/2]) -> (a cos - b sin, b cos + a sin), Hugging Face's
// half-split layout; cos and sin come from a table the host computed in float32 as transformers does.
//
// One workgroup per (head, row), one invocation per pair; heads run over q, k, v of a qkv row.

override HEAD_DIM: u32;
override Q_HEADS: u32;
override KV_HEADS: u32;
override TABLE_PAGES: u32; // pages per slot in the block table

@group(0) @binding(0) var<storage, read> qkv: array<f32>; // [rows, Q_HEADS + 2 KV_HEADS, HEAD_DIM]
@group(0) @binding(1) var<storage, read> rope: array<vec2<f32>>; // [positions, HEAD_DIM / 2]: cos, sin
@group(0) @binding(2) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(3) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(4) var<storage, read_write> q: array<f32>; // [rows, Q_HEADS, HEAD_DIM]
@group(0) @binding(5) var<storage, read_write> keys: array<f32>; // [pages, KV_HEADS, PAGE, HEAD_DIM]
@group(0) @binding(6) var<storage, read_write> values: array<f32>; // [pages, KV_HEADS, PAGE, HEAD_DIM]

@compute @workgroup_size(HEAD_DIM / 2u)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) i: u32) {
  let head = tile.x;
  let row = rows[tile.y];
  let half = HEAD_DIM / 2u;
  let source = (tile.y * (Q_HEADS + 2u * KV_HEADS) + head) * HEAD_DIM + i;
  let a = qkv[source];
  let b = qkv[source + half];
  let turn = rope[row.position * half + i];
  let rotated = vec2<f32>(fma(a, turn.x, -(b * turn.y)), fma(b, turn.x, a * turn.y));
  if (head < Q_HEADS) {
    let to = (tile.y * Q_HEADS + head) * HEAD_DIM + i;
    q[to] = rotated.x;
    q[to + half] = rotated.y;
    return;
  }
  if (row.live == 0u) {
    return;
  }
  let page = pages[row.slot * TABLE_PAGES + row.cell / PAGE];
  let kv_head = (head - Q_HEADS) % KV_HEADS;
  let to = ((page * KV_HEADS + kv_head) * PAGE + row.cell % PAGE) * HEAD_DIM + i;
  if (head < Q_HEADS + KV_HEADS) {
    keys[to] = rotated.x;
    keys[to + half] = rotated.y;
  } else {
    values[to] = a;
    values[to + half] = b;
  }
}
