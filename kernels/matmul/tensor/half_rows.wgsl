// scales[r] = scale_of(max_k |x[r, k]|), and out[r, k] = x[r, k] scales[r] as f16, rounded to the nearest: the form of
// x that the matmuls on matrix units multiply where one f16 stands for a number. Without this, each of their workgroups
// would round the same rows again. LANES invocations of a workgroup share a row.

//#import lib/scale_of
//#import lib/hi_of

override COLS: u32; // a multiple of 8
override LANES: u32; // a power of two, at most THREADS

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>; // [rows, COLS / 4]: its size gives the rows
@group(0) @binding(1) var<storage, read_write> scales: array<f32>; // [rows]
@group(0) @binding(2) var<storage, read_write> out: array<vec4<u32>>; // eight f16 each, [rows, COLS / 8]

const THREADS = 256u;

var<workgroup> peaks: array<u32, THREADS>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let vec8s = COLS / 8u;
  let rows = arrayLength(&x) / (2u * vec8s);
  let row = group.x * (THREADS / LANES) + thread / LANES;
  let first = min(row, rows - 1u) * vec8s;
  let lane = thread % LANES;
  var peak = vec4<u32>();
  for (var i = lane; i < vec8s; i += 2u * LANES) {
    // Past the end the last vec8 is loaded again.
    //#for u in 2
    let at$u = 2u * (first + min(i + $uu * LANES, vec8s - 1u));
    let a$u = x[at$u];
    let b$u = x[at$u + 1u];
    //#endfor
    //#for u in 2
    // The bits of floats without their sign are ordered like the floats.
    peak = max(peak, bitcast<vec4<u32>>(a$u) & vec4(0x7fffffffu));
    peak = max(peak, bitcast<vec4<u32>>(b$u) & vec4(0x7fffffffu));
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
  if (row >= rows) {
    return;
  }
  let scale = scale_of(bitcast<f32>(peaks[thread - lane]));
  if (lane == 0u) {
    scales[row] = scale;
  }
  for (var i = lane; i < vec8s; i += LANES) {
    out[first + i] = packed(x[2u * (first + i)] * scale, x[2u * (first + i) + 1u] * scale);
  }
}
