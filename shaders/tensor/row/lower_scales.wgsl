// A row's scales of the inputs of a layer's other matmuls become the largest, for their producers to lower: as
// norm/norm_note_scale.wgsl has it, of a norm that is no dispatch.

//use tensor/scale_of

override LOWERED_ROWS: u32; // of attention's output, in lowered
override ROW_JOBS: u32;

// Of attention's output, [LOWERED_ROWS], and of the gated activations, [rows, ROW_JOBS].
@group(0) @binding(15) var<storage, read_write> lowered: array<f32>;

fn lower_scales(lane: u32) {
  for (var j = lane; j < ROW_JOBS; j += THREADS) {
    lowered[LOWERED_ROWS + j] = bitcast<f32>(LARGEST_SCALE);
  }
  if (lane == 0u) {
    lowered[0] = bitcast<f32>(LARGEST_SCALE);
  }
}
