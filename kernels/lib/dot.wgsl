// Inner products of x with weights of a packed block, of eight numbers at a time, $dots:
//
//   X                   eight numbers of x, as `x_of(lo, hi)` makes them of floats;
//   weights_<c>(block)  vec8 c of a block, whose format the importer has (lib/weights_FORMAT);
//   add_dot(sum, x, w)  is sum + x . w.

//#if dots == floats
// floats: in f32, for weights that are floats or have zeros of their own; x as it is.

//#import lib/add8

alias X = Vec8;

fn x_of(lo: vec4<f32>, hi: vec4<f32>) -> X {
  return X(lo, hi);
}

//#if weights == mxfp4
//#import lib/dot_fp4
//#else if weights == nvfp4
//#import lib/dot_fp4
//#else
fn add_dot(sum: f32, x: X, w: Vec8) -> f32 {
  return add8(sum, x.lo, x.hi, w);
}

//#for c in BLOCK_VEC8S
fn weights_$c(block: PackedBlock) -> Vec8 {
  return vec8_$c(block);
}
//#endfor
//#endif
//#else
// packed and whole: x as signed bytes, for products with integers: x = n * step, one step for a vec8, |n| <= 127. 128
// steps are the first quarter of a power of two above the vec8's largest number and 2^-7 of that number's power. A step
// has three bits, so that n * step and step * scale are exact, and so is the sum of n * q over a vec8, as an integer or
// in f32.

const MIN_BOUND = 60u << 23u; // 2^-67: what is below 2^-75 becomes 0, and no step underflows
const MAX_BOUND = 230u << 23u; // 2^103: what needs more, is infinite or NaN makes the sum NaN

struct Scale {
  step: f32,
  inverse: f32, // 1 / step, rounded
}

// Bits of 1, 4/5, 4/6 and 4/7.
fn inverse_of(quarters: u32) -> u32 {
  let low = select(0x3f800000u, 0x3f4ccccdu, (quarters & 1u) == 1u);
  let high = select(0x3f2aaaabu, 0x3f124925u, (quarters & 1u) == 1u);
  return select(low, high, quarters >= 2u);
}

fn scale_of(lo: vec4<f32>, hi: vec4<f32>) -> Scale {
  // The bits of floats without their sign are ordered like the floats.
  let sizes = max(bitcast<vec4<u32>>(lo) & vec4<u32>(0x7fffffffu), bitcast<vec4<u32>>(hi) & vec4<u32>(0x7fffffffu));
  let largest = max(max(sizes.x, sizes.y), max(sizes.z, sizes.w));
  // 2^-7 of the number's power of two is 2^16 of its last places, a quarter 2^21.
  let above = (min(largest, 0x7f800000u) + 0x210000u) & 0xffe00000u;
  let bound = clamp(above, MIN_BOUND, MAX_BOUND);
  let step = select(bound - (7u << 23u), 0x7fc00000u, above > MAX_BOUND);
  let inverse = inverse_of((bound >> 21u) & 3u) + (134u << 23u) - (bound & 0x7f800000u);
  return Scale(bitcast<f32>(step), bitcast<f32>(inverse));
}

// 1.5 * 2^23: the sum with a number below 2^22 is rounded to an integer, whose two's complement is in its low bits.
const BIAS = 12582912.0;
const BIAS_BITS = 0x4b400000i;

fn with_bias(x: vec4<f32>, inverse: f32) -> vec4<i32> {
  return bitcast<vec4<i32>>(fma(x, vec4<f32>(inverse), vec4<f32>(BIAS)));
}
//#if dots == packed
// packed: four products per instruction; neither weights nor x are ever unpacked.

struct X {
  bytes: vec2<u32>, // n of the low and the high half
  step: f32,
}

fn bytes_of(n: vec4<i32>) -> u32 {
  let low = bitcast<vec4<u32>>(n) & vec4<u32>(0xffu);
  return low.x | (low.y << 8u) | (low.z << 16u) | (low.w << 24u);
}

fn x_of(lo: vec4<f32>, hi: vec4<f32>) -> X {
  let scale = scale_of(lo, hi);
  let bytes = vec2<u32>(bytes_of(with_bias(lo, scale.inverse)), bytes_of(with_bias(hi, scale.inverse)));
  return X(bytes, scale.step);
}

fn add_dot(sum: f32, x: X, w: Packed) -> f32 {
  // The sum of a vec8 is below 2^17: added to the bits of BIAS it is a float without a conversion.
  let n = dot4I8Packed(x.bytes.y, w.hi) + (dot4I8Packed(x.bytes.x, w.lo) + BIAS_BITS);
  return fma(bitcast<f32>(n) - BIAS, x.step * w.scale, sum);
}

//#for c in BLOCK_VEC8S
fn weights_$c(block: PackedBlock) -> Packed {
  return packed_$c(block);
}
//#endfor
//#else
// whole: whole numbers in f32, with the same bits as packed, where the adapter has no instruction for that. The weights
// are unpacked once for all rows of a tile.

//#import lib/add8

alias X = Vec8;

fn x_of(lo: vec4<f32>, hi: vec4<f32>) -> X {
  let scale = scale_of(lo, hi);
  return X(
    vec4<f32>(with_bias(lo, scale.inverse) - vec4<i32>(BIAS_BITS)) * scale.step,
    vec4<f32>(with_bias(hi, scale.inverse) - vec4<i32>(BIAS_BITS)) * scale.step,
  );
}

fn add_dot(sum: f32, x: X, w: Whole) -> f32 {
  return fma(add8(0.0, x.lo, x.hi, w.vec8), w.scale, sum);
}

//#for c in BLOCK_VEC8S
fn weights_$c(block: PackedBlock) -> Whole {
  return whole_$c(block);
}
//#endfor
//#endif
//#endif
