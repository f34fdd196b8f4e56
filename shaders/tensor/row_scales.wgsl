// scales[r] = scale_of(max_k |x[r, k]|): the row's largest number becomes one in [2^14, 2^15).
// One workgroup a row.

//use tensor/scale_of

override COLS: u32;

// [rows, COLS / 4]
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
// [rows]
@group(0) @binding(1) var<storage, read_write> scales: array<f32>;

const THREADS = 256u;

var<workgroup> peaks: array<u32, 256>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  var peak = vec4<u32>();
  for (var i = thread; i < COLS / 4u; i += THREADS) {
    // The bits of numbers without sign are in the order of the numbers.
    peak = max(peak, bitcast<vec4<u32>>(x[group.x * (COLS / 4u) + i]) & vec4(0x7fffffffu));
  }
  peaks[thread] = max(max(peak.x, peak.y), max(peak.z, peak.w));
  workgroupBarrier();
  for (var half = THREADS / 2u; half > 0u; half /= 2u) {
    if (thread < half) {
      peaks[thread] = max(peaks[thread], peaks[thread + half]);
    }
    workgroupBarrier();
  }
  if (thread == 0u) {
    scales[group.x] = scale_of(bitcast<f32>(peaks[0]));
  }
}
