// scales[n] = 2^(14 - floor(log2 max_k |W[n, k]|)) as in row_scales.wgsl, of a bf16 matrix; and
// faults[n], how many numbers of the row, times its scale, are not exact in f16: those that need bits below 2^-24. One
// workgroup per row, ROWS_ACROSS of them along x: a dimension has at most 65,535.

override COLS: u32;
override ROWS_ACROSS: u32;

// [rows, COLS / 2]: two bf16
@group(0) @binding(0) var<storage, read> weights: array<u32>;
// [rows]
@group(0) @binding(1) var<storage, read_write> scales: array<f32>;
// [rows]
@group(0) @binding(2) var<storage, read_write> faults: array<u32>;

const THREADS = 256u;

var<workgroup> parts: array<u32, 256>;

fn faulty(bf16: u32, largest: u32) -> u32 {
  let bits = bf16 & 0x7fffu;
  if (bits == 0u) {
    return 0u;
  }
  // The exponent of its lowest bit that is set, less that of the row's largest number. A subnormal bf16 counts as if it
  // had a leading one: it is far below all that f16 reaches.
  let lowest = i32(bits >> 7u) - 7 + i32(countTrailingZeros((bits & 0x7fu) | 0x80u));
  return select(0u, 1u, lowest - i32(largest) + 14 < -24);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let row = group.y * ROWS_ACROSS + group.x;
  if (row >= arrayLength(&scales)) {
    return;
  }
  var peak = 0u;
  for (var i = thread; i < COLS / 2u; i += THREADS) {
    let pair = weights[row * (COLS / 2u) + i];
    peak = max(peak, max(pair & 0x7fffu, (pair >> 16u) & 0x7fffu));
  }
  parts[thread] = peak;
  workgroupBarrier();
  for (var half = THREADS / 2u; half > 0u; half /= 2u) {
    if (thread < half) {
      parts[thread] = max(parts[thread], parts[thread + half]);
    }
    workgroupBarrier();
  }
  let exponent = clamp(parts[0] >> 7u, 127u - 60u, 254u);
  workgroupBarrier();
  var bad = 0u;
  for (var i = thread; i < COLS / 2u; i += THREADS) {
    let pair = weights[row * (COLS / 2u) + i];
    bad += faulty(pair & 0xffffu, exponent) + faulty(pair >> 16u, exponent);
  }
  parts[thread] = bad;
  workgroupBarrier();
  for (var half = THREADS / 2u; half > 0u; half /= 2u) {
    if (thread < half) {
      parts[thread] += parts[thread + half];
    }
    workgroupBarrier();
  }
  if (thread == 0u) {
    scales[row] = bitcast<f32>((127u + 14u + 127u - exponent) << 23u);
    faults[row] = parts[0];
  }
}
