// attention.wgsl over queries that are normed and turned, and keys and values that are stored.

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [rows, heads, 2 VEC8S]
@group(0) @binding(1) var<storage, read> keys: array<vec4<u32>>; // [pages, KV_HEADS, PAGE], rows of a dtype
@group(0) @binding(2) var<storage, read> values: array<vec4<u32>>; // as keys

fn query_vec8(query: u32, at: u32, e: u32) -> Vec8 {
  return Vec8(q[at + e], q[at + VEC8S + e]);
}
