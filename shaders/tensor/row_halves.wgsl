// scales[r] as in row_scales.wgsl, and x * scale as two f16 numbers, hi + lo: hi is x cut to 11 bits, by its
// bits, because a driver takes unpack2x16float(pack2x16float(x)) for x. One workgroup a row.

override COLS: u32;

// [rows, COLS / 4]
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
// [rows]
@group(0) @binding(1) var<storage, read_write> scales: array<f32>;
// [rows, COLS / (8 $EIGHTS), (hi, lo), $EIGHTS]: eight f16
@group(0) @binding(2) var<storage, read_write> out: array<vec4<u32>>;

const THREADS = 256u;

var<workgroup> peaks: array<u32, 256>;

fn cut(x: vec4<f32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(bitcast<vec4<u32>>(x) & vec4(0xffffe000u));
}

fn packed(a: vec4<f32>, b: vec4<f32>) -> vec4<u32> {
  return vec4(
    pack2x16float(a.xy),
    pack2x16float(a.zw),
    pack2x16float(b.xy),
    pack2x16float(b.zw),
  );
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let row = group.x * (COLS / 4u);
  var peak = vec4<u32>();
  for (var i = thread; i < COLS / 4u; i += THREADS) {
    // The bits of numbers without sign are in the order of the numbers.
    peak = max(peak, bitcast<vec4<u32>>(x[row + i]) & vec4(0x7fffffffu));
  }
  peaks[thread] = max(max(peak.x, peak.y), max(peak.z, peak.w));
  workgroupBarrier();
  for (var half = THREADS / 2u; half > 0u; half /= 2u) {
    if (thread < half) {
      peaks[thread] = max(peaks[thread], peaks[thread + half]);
    }
    workgroupBarrier();
  }
  let exponent = clamp(peaks[0] >> 23u, 127u - 60u, 254u);
  let scale = bitcast<f32>((127u + 14u + 127u - exponent) << 23u);
  if (thread == 0u) {
    scales[group.x] = scale;
  }
  for (var i = thread; i < COLS / 8u; i += THREADS) {
    let a = x[row + 2u * i] * scale;
    let b = x[row + 2u * i + 1u] * scale;
    let at = row + i / $EIGHTSu * ($EIGHTSu * 2u) + i % $EIGHTSu;
    out[at] = packed(cut(a), cut(b));
    out[at + $EIGHTSu] = packed(a - cut(a), b - cut(b));
  }
}
