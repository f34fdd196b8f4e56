// Of latent_value.wgsl: weighted sums of latents that are ready.

override WIDTH: u32; // of a latent row, a multiple of 8

@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>; // [rows, HEADS, WIDTH / 4]

fn row_count() -> u32 {
  return arrayLength(&x) / (HEADS * WIDTH / 4u);
}

fn mix(query: u32, row: u32, thread: u32) {}

// Four elements of the weighted sum of a query.
fn mixed(query: u32, i: u32) -> vec4<f32> {
  return x[query * (WIDTH / 4u) + i];
}
