// scales[r] = scale_of(max_k |x[r, k]|): the row's largest number becomes one in [2^14, 2^15).
// LANES invocations of a workgroup share a row; each loads four vectors at once.

//#import lib/scale_of

override COLS: u32;
override LANES: u32; // a power of two, at most THREADS

// [rows, COLS / 4]: its size gives the rows
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
// [rows]
@group(0) @binding(1) var<storage, read_write> scales: array<f32>;

const THREADS = 256u;

var<workgroup> peaks: array<u32, THREADS>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let words = COLS / 4u;
  let rows = arrayLength(&x) / words;
  let row = group.x * (THREADS / LANES) + thread / LANES;
  let first = min(row, rows - 1u) * words;
  let lane = thread % LANES;
  var peak = vec4<u32>();
  for (var i = lane; i < words; i += 4u * LANES) {
    // Past the end the last vector is loaded again.
    //#for u in 4
    let x$u = x[first + min(i + $uu * LANES, words - 1u)];
    //#endfor
    //#for u in 4
    // The bits of floats without their sign are ordered like the floats.
    peak = max(peak, bitcast<vec4<u32>>(x$u) & vec4(0x7fffffffu));
    //#endfor
  }
  peaks[thread] = max(max(peak.x, peak.y), max(peak.z, peak.w));
  workgroupBarrier();
  for (var half = LANES / 2u; half > 0u; half /= 2u) {
    if (lane < half) {
      peaks[thread] = max(peaks[thread], peaks[thread + half]);
    }
    workgroupBarrier();
  }
  if (lane == 0u && row < rows) {
    scales[row] = scale_of(bitcast<f32>(peaks[thread]));
  }
}
