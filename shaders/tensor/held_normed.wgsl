// What hold_normed.wgsl declares: what matmul/hold/normed_held.wgsl does, and scales that are lowered later.

//use matmul/hold/normed_held
//use tensor/scale_of

//for l in LOWERS
override LOWERED_ROWS: u32; // row stride of lowered

// Of attention's output and of the gated activations, [2, LOWERED_ROWS].
@group(0) @binding(12) var<storage, read_write> lowered: array<f32>;
//end

fn size_of(a: vec4<f32>, b: vec4<f32>) -> f32 {
  let size = max(abs(a), abs(b));
  return max(max(size.x, size.y), max(size.z, size.w));
}
