// The scale of numbers of at most `peak`, 0 or above, that makes them less than 2^15, which f16 holds:
// 2^(14 - floor(log2 peak)). A power of two, so that multiplying by it is exact. Numbers below 2^-60 are
// scaled as if that were the peak. Every kernel that computes a row's scale gets the same one, and so the same bits.

const LARGEST_SCALE = 0x64800000u; // bits of 2^74, the scale of zeros

fn scale_of(peak: f32) -> f32 {
  let exponent = clamp(bitcast<u32>(peak) >> 23u, 127u - 60u, 254u);
  return bitcast<f32>((127u + 14u + 127u - exponent) << 23u);
}
