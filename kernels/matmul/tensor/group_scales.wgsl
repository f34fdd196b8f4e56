// scales[n] = scale_of(MAX * max_g |scale of group g of row n|) of a quantized matrix, whose integers are at most
// MAX: the row's largest weight becomes less than 2^15.
// One workgroup per row, ROWS_ACROSS of them along x.

//#import lib/scale_of

override WORDS: u32; // of the scales of a row
override MAX: f32;
override PAIRS: u32; // 1: a word is two f16; 0: an f32, u4's with the zero in its five lowest bits
override ROWS_ACROSS: u32;

// [rows, WORDS]
@group(0) @binding(0) var<storage, read> groups: array<u32>;
// [rows]
@group(0) @binding(1) var<storage, read_write> scales: array<f32>;

const THREADS = 64u;

var<workgroup> peaks: array<f32, 64>;

//#if EXPONENTS
// WORDS is the number of bytes, which are biased exponents (E8M0); exponent 0 is read as 2^-126.
fn peak_at(i: u32) -> f32 {
  return bitcast<f32>(max((groups[i / 4u] >> (8u * (i % 4u))) & 0xffu, 1u) << 23u);
}
//#else
fn peak_of(word: u32) -> f32 {
  let pair = abs(unpack2x16float(word));
  return select(abs(bitcast<f32>(word & 0xffffffe0u)), max(pair.x, pair.y), PAIRS == 1u);
}
//#endif

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let row = group.y * ROWS_ACROSS + group.x;
  if (row >= arrayLength(&scales)) {
    return;
  }
  var peak = 0.0;
  for (var i = thread; i < WORDS; i += THREADS) {
    //#if EXPONENTS
    peak = max(peak, peak_at(row * WORDS + i));
    //#else
    peak = max(peak, peak_of(groups[row * WORDS + i]));
    //#endif
  }
  peaks[thread] = peak;
  workgroupBarrier();
  for (var half = THREADS / 2u; half > 0u; half /= 2u) {
    if (thread < half) {
      peaks[thread] = max(peaks[thread], peaks[thread + half]);
    }
    workgroupBarrier();
  }
  if (thread == 0u) {
    scales[row] = scale_of(peaks[0] * MAX);
  }
}
