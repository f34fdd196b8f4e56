// Rows of f32 numbers as f16 for matrix units: x = (hi + lo) / scale but for its last bit, hi and lo two f16 numbers,
// the scale a power of two that the row's largest number decides (scale_of.wgsl). Numbers of 16 bits need hi alone.
//
// hi is rounded to 11 bits by integer operations: a driver simplifies unpack2x16float(pack2x16float(x)) to x, so that
// lo would be 0. Parameter: WIDE_STEPS.

//#import lib/packed
//#import lib/scale_of

fn high(x: vec4<f32>) -> vec4<f32> {
  return bitcast<vec4<f32>>((bitcast<vec4<u32>>(x) + vec4(0x1000u)) & vec4(0xffffe000u));
}

// hi of eight numbers.
fn high_halves(a: vec4<f32>, b: vec4<f32>) -> vec4<u32> {
  return packed(high(a), high(b));
}

// lo of eight numbers.
fn low_halves(a: vec4<f32>, b: vec4<f32>) -> vec4<u32> {
  return packed(a - high(a), b - high(b));
}

// 1 / scale, exactly.
fn inverse(scale: f32) -> f32 {
  return bitcast<f32>(0x7f000000u - bitcast<u32>(scale));
}

// The scale of the row that 2^WIDE_STEPS neighbouring invocations of a subgroup have, two vec8s each.
fn row_scale(x: Vec8, y: Vec8) -> f32 {
  let most = max(max(abs(x.lo), abs(x.hi)), max(abs(y.lo), abs(y.hi)));
  var peak = max(max(most.x, most.y), max(most.z, most.w));
  //#for w in WIDE_STEPS
  peak = max(peak, subgroupShuffleXor(peak, 1u << $wu));
  //#endfor
  return scale_of(peak);
}
