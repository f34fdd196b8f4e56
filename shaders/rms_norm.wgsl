// out[r, OUT_FIRST + c] = x[r, c] / sqrt(mean(x[r]^2) + EPS) * weight[c]
//
// One workgroup per row. Lane l sums its columns l, l + LANES, ...; every lane then adds the
// lane sums in order.

override COLS: u32;
override EPS: f32;
override OUT_COLS: u32; // row stride of out
override OUT_FIRST: u32; // first column written
override LANES: u32;

@group(0) @binding(0) var<storage, read> x: array<f32>; // [rows, COLS]
@group(0) @binding(1) var<storage, read> weight: array<f32>; // [COLS]
@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [rows, OUT_COLS]

var<workgroup> partial: array<f32, LANES>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = tile.x * COLS;
  var sum = 0.0;
  for (var c = lane; c < COLS; c += LANES) {
    sum = fma(x[row + c], x[row + c], sum);
  }
  partial[lane] = sum;
  workgroupBarrier();
  var total = 0.0;
  for (var l = 0u; l < LANES; l++) {
    total += partial[l];
  }
  let scale = 1.0 / sqrt(total / f32(COLS) + EPS);
  for (var c = lane; c < COLS; c += LANES) {
    out[tile.x * OUT_COLS + OUT_FIRST + c] = x[row + c] * scale * weight[c];
  }
}
