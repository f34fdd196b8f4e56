// tiles = weights times the scales of their rows, f16 of bf16, exact where weight_scales.wgsl counted no faults, in the
// order in which expert_tensor.wgsl reads them. Rows are taken in groups of $GROUP. In a group the vec8s of k
// follow each other, and the same vec8 of all rows lies side by side, so that a stage of k reads one contiguous
// piece of a group.
//
// One invocation per vec8 of a row.

override COLS: u32; // a multiple of 8

//#import lib/to_f16

// [rows, COLS / 8]: eight bf16
@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;
// [rows], a multiple of $GROUP
@group(0) @binding(1) var<storage, read> scales: array<f32>;
// [rows / $GROUP, COLS / 8, $GROUP]: eight f16
@group(0) @binding(2) var<storage, read_write> tiles: array<vec4<u32>>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let vec8s = COLS / 8u;
  if (id.x >= vec8s * $GROUPu) {
    return;
  }
  let row = id.y * $GROUPu + id.x % $GROUPu;
  tiles[id.y * vec8s * $GROUPu + id.x] = eight_halves(weights[row * vec8s + id.x / $GROUPu], scales[row]);
}
