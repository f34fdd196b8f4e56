// Activations as integers, for products with integers: x = n * step, n of 15 bits, where step is the
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
