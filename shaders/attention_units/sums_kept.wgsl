// Sums of splits are kept for combine_units.wgsl.

override KEPT: u32; // partial sums of a query

@group(0) @binding(5) var<storage, read_write> sums: array<vec4<f32>>; // [rows, heads, KEPT, 2 VEC8S]
@group(0) @binding(6) var<storage, read_write> stats: array<vec2<f32>>; // [rows, heads, KEPT]: peak, base 2, and total

fn put(query: u32, z: u32, quad: u32, sum: vec4<f32>, stat: vec2<f32>) {
  if (stat.y > 0.0) {
    let at = query * KEPT + z;
    sums[at * (2u * VEC8S) + quad] = sum;
    if (quad == 0u) {
      stats[at] = stat;
    }
  }
}
