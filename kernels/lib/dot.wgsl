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
// packed and whole: x as integers, for products with integers, x = n * step, n of 15 bits, where step is the
// power of two that brings the largest of a vec8 to 2^13 .. 2^14. Every sum over a vec8 of n * q,
// q of 8 bits, stays below 2^24, so that integers and floats both hold it exactly.

const LEAST_EXPONENT = 60u << 23u; // of 2^-67: what is below 2^-81 becomes 0, and no step underflows
const MOST_EXPONENT = 230u << 23u; // of 2^103: what is larger, infinite or NaN makes the sum NaN

struct Scale {
  step: f32,
  inverse: f32,
}

fn scale_of(lo: vec4<f32>, hi: vec4<f32>) -> Scale {
  // As integers, floats without their sign are in order.
  let sizes = max(bitcast<vec4<u32>>(lo) & vec4<u32>(0x7fffffffu), bitcast<vec4<u32>>(hi) & vec4<u32>(0x7fffffffu));
  let largest = max(max(sizes.x, sizes.y), max(sizes.z, sizes.w)) & 0x7f800000u;
  let exponent = clamp(largest, LEAST_EXPONENT, MOST_EXPONENT);
  let step = select(exponent - (13u << 23u), 0x7fc00000u, largest > MOST_EXPONENT);
  return Scale(bitcast<f32>(step), bitcast<f32>(((254u + 13u) << 23u) - exponent));
}
//#if dots == packed
// packed: integers of 8 bits, four products an instruction, in tiles of few rows: weights are never unpacked, and take
// a quarter of the registers that floats would.
//
// n = 256 h + l has two signed bytes, h in -64 .. 64. The sum over a vec8 is exact, so this has the
// bits of the whole ones.

struct X {
  bytes: vec4<u32>, // h of the low and the high half, l of both
  step: f32,
}

// 1.5 * 2^23 + 128: the sum with n has n + 128 in its low 16 bits, which is h in the upper byte and
// l + 128 in the lower one.
const BIAS = 12583040.0;

fn with_bias(x: vec4<f32>, inverse: f32) -> vec4<u32> {
  return bitcast<vec4<u32>>(fma(x, vec4<f32>(inverse), vec4<f32>(BIAS)));
}

// The low 16 bits of x and z, and of y and w, in a word each: bytes of both then alternate in order.
fn halves(n: vec4<u32>) -> vec2<u32> {
  return (n.xy & vec2<u32>(0xffffu)) | (n.zw << vec2<u32>(16u));
}

fn upper(n: vec2<u32>) -> u32 {
  return ((n.x >> 8u) & 0xff00ffu) | (n.y & 0xff00ff00u);
}

fn lower(n: vec2<u32>) -> u32 {
  return ((n.x & 0xff00ffu) | ((n.y << 8u) & 0xff00ff00u)) ^ 0x80808080u;
}

fn x_of(lo: vec4<f32>, hi: vec4<f32>) -> X {
  let scale = scale_of(lo, hi);
  let a = halves(with_bias(lo, scale.inverse));
  let b = halves(with_bias(hi, scale.inverse));
  return X(vec4<u32>(upper(a), upper(b), lower(a), lower(b)), scale.step);
}

fn add_dot(sum: f32, x: X, w: Packed) -> f32 {
  let h = dot4I8Packed(x.bytes.x, w.lo) + dot4I8Packed(x.bytes.y, w.hi);
  let l = dot4I8Packed(x.bytes.z, w.lo) + dot4I8Packed(x.bytes.w, w.hi);
  return fma(f32(256 * h + l), x.step * w.scale, sum);
}

//#for c in BLOCK_VEC8S
fn weights_$c(block: PackedBlock) -> Packed {
  return packed_$c(block);
}
//#endfor
//#else
// whole: whole numbers in f32, what packed sums, to the bit, where the adapter has no instruction for that, with the
// weights unpacked once for all rows of a tile.

//#import lib/add8

alias X = Vec8;

fn x_of(lo: vec4<f32>, hi: vec4<f32>) -> X {
  let scale = scale_of(lo, hi);
  return X(round(lo * scale.inverse) * scale.step, round(hi * scale.inverse) * scale.step);
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
