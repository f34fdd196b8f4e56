// attention.wgsl over what the qkv matmul left of one row a slot, the only one that it has in flight: its queries and
// its key are normed and turned here, as norm_rope_store.wgsl does to the bit. The workgroups of the split that
// has the row's cell make its key and value themselves, and those of the first heads store them: nobody waits for
// others' stores.
//
// Head vectors, $GROUP queries, the key and the value, have 32 lanes each, which take rope pairs l, l + 32, ...
// Slot:
//   kv_put: `fn packed_of(v)`, `fn put_key(row, i, packed)` and `put_value` of a dtype (kv/put_*.wgsl).

//use attention/turned
//use attention/norm_scale
//use kv_put

const NORM_LANES = 32u;
const HALF = 4u * VEC8S; // rope pairs of a head
const KEY = GROUP; // among the head vectors
const VALUE = GROUP + 1u;

@group(0) @binding(0) var<storage, read> qkv: array<f32>; // [rows, heads + 2 KV_HEADS, 8 VEC8S]
@group(0) @binding(1) var<storage, read_write> keys: array<vec4<u32>>; // [pages, KV_HEADS, PAGE], rows of a dtype
@group(0) @binding(2) var<storage, read_write> values: array<vec4<u32>>; // as keys
@group(0) @binding(7) var<storage, read> rope: array<vec2<f32>>; // [positions, HALF]: cos, sin
@group(0) @binding(8) var<storage, read> norm_weight: array<f32>; // [2, 8 VEC8S]: of q, of k

var<workgroup> squares: array<f32, (GROUP + 2u) * NORM_LANES>;
var<workgroup> made: array<vec4<f32>, (GROUP + 2u) * 2u * VEC8S>;

fn squares_of(sum: f32, pair: vec2<f32>) -> f32 {
  return fma(pair.y, pair.y, fma(pair.x, pair.x, sum));
}

fn made_vec8(head: u32, i: u32) -> Vec8 {
  return Vec8(made[head * 2u * VEC8S + i], made[head * 2u * VEC8S + VEC8S + i]);
}

fn query_vec8(query: u32, at: u32, e: u32) -> Vec8 {
  return made_vec8(query, e);
}

fn key_vec8(stored: PackedVec8, is_new: bool, e: u32) -> Vec8 {
  var key = stored;
  if (is_new) {
    key = packed_of(made_vec8(KEY, e));
  }
  return vec8_of(key);
}

fn value_vec8(stored: PackedVec8, is_new: bool, i: u32) -> Vec8 {
  var value = stored;
  if (is_new) {
    value = packed_of(made_vec8(VALUE, i));
  }
  return vec8_of(value);
}
