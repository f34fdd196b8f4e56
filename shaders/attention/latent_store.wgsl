// What multi-head latent attention stores of a token:
// [norm(x[.. RANK]) * norm_weight; rope(x[RANK ..])], one for
// all heads, into its cell of the pages.
//
// One workgroup per row. Lane l squares elements l, l + LANES, ...; the lanes are added in order.
// Slot:
//   kv_store: `fn store_key(row, w, pair)` of a dtype (fragments/kv_store_*.wgsl).

//use attention/latent_rope
//use kv_store

override RANK: u32;
override EPS: f32;
override LANES: u32;
override HEAD_DIM: u32; // RANK + ROPE
override TABLE_PAGES: u32; // pages per slot in the block table

@group(0) @binding(0) var<storage, read> norm_weight: array<f32>; // [RANK]
@group(0) @binding(5) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(6) var<storage, read_write> keys: array<u32>; // [pages, PAGE], rows of a dtype

var<private> values: array<u32, 1>; // of `store_value`, which is not called: values are parts of keys

var<workgroup> squares: array<f32, LANES>;

fn element(first: u32, d: u32, scale: f32, position: u32) -> f32 {
  if (d < RANK) {
    return x[first + d] * scale * norm_weight[d];
  }
  return turned(first + RANK, d - RANK, position);
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first = tile.x * HEAD_DIM;
  var square = 0.0;
  for (var i = lane; i < RANK; i += LANES) {
    square = fma(x[first + i], x[first + i], square);
  }
  squares[lane] = square;
  workgroupBarrier();
  let row = rows[tile.x];
  if (row.live == 0u) {
    return;
  }
  var sum = 0.0;
  for (var l = 0u; l < LANES; l++) {
    sum += squares[l];
  }
  let scale = 1.0 / sqrt(sum / f32(RANK) + EPS);
  let page = pages[row.slot * TABLE_PAGES + row.cell / PAGE];
  let half = HEAD_DIM / 2u;
  for (var w = lane; w < half; w += LANES) {
    store_key(page * PAGE + row.cell % PAGE, w, vec2<f32>(
      element(first, w, scale, row.position),
      element(first, w + half, scale, row.position),
    ));
  }
}
