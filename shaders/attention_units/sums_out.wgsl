// All splits that a row sees are one workgroup's: its output is written; zeros for padding.

@group(0) @binding(5) var<storage, read_write> out: array<vec4<f32>>; // [rows, heads, 2 VEC8S]

fn put(query: u32, z: u32, quad: u32, sum: vec4<f32>, stat: vec2<f32>) {
  out[query * (2u * VEC8S) + quad] = select(vec4<f32>(), sum / stat.y, stat.y > 0.0);
}
