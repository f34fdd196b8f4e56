// attention.wgsl over what the qkv matmul left: queries and the keys of the rows in flight are normed and
// turned here, as norm_rope_store.wgsl does to the bit, and the keys and values of the rows are stored
// by their own workgroups. All rows in flight of a slot are its PER_SLOT = $NEW ones, at consecutive cells,
// the live ones first.
//
// Head vectors are normed by 32 lanes each, which take rope pairs l, l + 32, ... as norm_rope_store.wgsl has it.
// A workgroup whose split has cells of rows in flight makes their keys itself: nobody waits for others' stores.
// Slot:
//   kv_put: `fn packed_of(v)`, `fn put_key(row, i, packed)` and `put_value` of a dtype (fragments/kv_put_*.wgsl).

//use fragments/turned
//use fragments/norm_scale
//use kv_put

const NORM_LANES = 32u;
const HALF = 4u * VEC8S; // rope pairs of a head
const NORM_HEADS = THREADS / NORM_LANES; // normed at a time

@group(0) @binding(0) var<storage, read> qkv: array<f32>; // [rows, heads + 2 KV_HEADS, 8 VEC8S]
@group(0) @binding(1) var<storage, read_write> keys: array<vec4<u32>>; // [pages, KV_HEADS, PAGE], rows of a dtype
@group(0) @binding(2) var<storage, read_write> values: array<vec4<u32>>; // as keys
@group(0) @binding(7) var<storage, read> rope: array<vec2<f32>>; // [positions, HALF]: cos, sin
@group(0) @binding(8) var<storage, read> norm_weight: array<f32>; // [2, 8 VEC8S]: of q, of k

var<workgroup> squares: array<f32, (NORM_HEADS + $NEWu) * NORM_LANES>;
var<workgroup> queries: array<vec4<f32>, NORM_HEADS * 2u * VEC8S>;
var<workgroup> new_heads: array<vec4<f32>, 2u * $NEWu * 2u * VEC8S>; // of each new cell its key, its value

// Element `at` of head vector `head` of `queries` or `new_heads` is component at % 4 of vector at / 4.
fn place_of(head: u32, at: u32) -> u32 {
  return head * 2u * VEC8S + at / 4u;
}

fn squares_of(sum: f32, pair: vec2<f32>) -> f32 {
  return fma(pair.y, pair.y, fma(pair.x, pair.x, sum));
}

fn norm_of(first: u32) -> f32 {
  var sum = 0.0;
  //for l in NORM_LANES
  sum += squares[first + $lu];
  //end
  return norm_scale(sum, 2u * HALF);
}

fn query_vec8(query: u32, at: u32, e: u32) -> Vec8 {
  return Vec8(queries[query * 2u * VEC8S + e], queries[query * 2u * VEC8S + VEC8S + e]);
}

fn new_vec8(head: u32, i: u32) -> PackedVec8 {
  let at = head * 2u * VEC8S + i;
  return packed_of(Vec8(new_heads[at], new_heads[at + VEC8S]));
}

fn key_vec8(stored: PackedVec8, cell: u32, newest: u32, e: u32) -> Vec8 {
  var key = stored;
  if (cell >= newest) {
    key = new_vec8(2u * (cell - newest), e);
  }
  return vec8_of(key);
}

fn value_vec8(stored: PackedVec8, cell: u32, newest: u32, i: u32) -> Vec8 {
  var value = stored;
  if (cell >= newest) {
    value = new_vec8(2u * (cell - newest) + 1u, i);
  }
  return vec8_of(value);
}
