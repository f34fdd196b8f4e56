// scales[r] = 2^(14 - floor(log2 max_k |x[r, k]|)): the row's largest number becomes one in
// [2^14, 2^15), which f16 holds; it is a power of two, so that multiplying by it is exact.
// One workgroup a row. Rows below 2^-60 are scaled as if that were their largest.

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
    let exponent = clamp(peaks[0] >> 23u, 127u - 60u, 254u);
    scales[group.x] = bitcast<f32>((127u + 14u + 127u - exponent) << 23u);
  }
}
