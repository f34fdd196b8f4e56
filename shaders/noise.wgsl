// Counter-based noise; src/speculate/noise.ts is the same to the bit.

fn mix(h: u32) -> u32 {
  var x = h;
  x ^= x >> 16u;
  x *= 0x7feb352du;
  x ^= x >> 15u;
  x *= 0x846ca68bu;
  x ^= x >> 16u;
  return x;
}

fn hash32(seed: u32, position: u32, token: u32) -> u32 {
  return mix(mix(mix(seed + 0x9e3779b9u) ^ (position + 0x85ebca6bu)) ^ (token + 0xc2b2ae35u));
}

// -log(1 - v), v = (h + 0.5) / 2^32. Small v decide the race, and 1 - v would lose their bits:
// below 1/64 the series is used.
fn exponential(h: u32) -> f32 {
  let v = (f32(h) + 0.5) * 2.3283064365386963e-10;
  if (v < 0.015625) {
    return v * fma(v, fma(v, fma(v, 0.25, 0.33333333333), 0.5), 1.0);
  }
  return -log(max(1.0 - v, 1.1641532182693481e-10));
}
