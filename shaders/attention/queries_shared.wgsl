// attention.wgsl over few stored queries, which go through workgroup memory: all keys and values are asked for
// before the first wait, and no invocation holds the queries beside them.

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [rows, heads, 2 VEC8S]
@group(0) @binding(1) var<storage, read> keys: array<vec4<u32>>; // [pages, KV_HEADS, PAGE], rows of a dtype
@group(0) @binding(2) var<storage, read> values: array<vec4<u32>>; // as keys

var<workgroup> queries: array<vec4<f32>, $QUERIESu * 2u * VEC8S>;

fn query_vec8(query: u32, at: u32, e: u32) -> Vec8 {
  return Vec8(queries[query * 2u * VEC8S + e], queries[query * 2u * VEC8S + VEC8S + e]);
}

fn key_vec8(stored: PackedVec8, cell: u32, newest: u32, e: u32) -> Vec8 {
  return vec8_of(stored);
}

fn value_vec8(stored: PackedVec8, cell: u32, newest: u32, i: u32) -> Vec8 {
  return vec8_of(stored);
}
