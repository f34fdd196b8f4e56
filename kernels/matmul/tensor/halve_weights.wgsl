// weights = weights * scales of their row, bf16 made f16 in place; exact where weight_scales.wgsl counted no
// faults. One workgroup per row, ROWS_ACROSS of them along x.

override COLS: u32;
override ROWS_ACROSS: u32;

// [rows, COLS / 2]: two numbers
@group(0) @binding(0) var<storage, read_write> weights: array<u32>;
// [rows]
@group(0) @binding(1) var<storage, read> scales: array<f32>;

const THREADS = 256u;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let row = group.y * ROWS_ACROSS + group.x;
  if (row >= arrayLength(&scales)) {
    return;
  }
  for (var i = thread; i < COLS / 2u; i += THREADS) {
    let pair = weights[row * (COLS / 2u) + i];
    let values = bitcast<vec2<f32>>(vec2(pair << 16u, pair & 0xffff0000u));
    weights[row * (COLS / 2u) + i] = pack2x16float(values * scales[row]);
  }
}
