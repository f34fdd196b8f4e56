// Counter-based noise: src/speculate/noise.ts to the bit.

fn mix32(x: u32) -> u32 {
  var h = x;
  h = (h ^ (h >> 16u)) * 0x7feb352du;
  h = (h ^ (h >> 15u)) * 0x846ca68bu;
  return h ^ (h >> 16u);
}

fn hash32(seed: u32, position: u32, token: u32) -> u32 {
  let row = mix32(mix32(seed + 0x9e3779b9u) ^ position);
  return mix32(mix32(token ^ row) + row);
}

// -log(1 - v), v = (h + 0.5) / 2^32. Small values decide the race, and 1 - v would lose their bits:
// below 1/64 the series is used.
fn exponential(h: u32) -> f32 {
  let v = (f32(h) + 0.5) * 2.3283064365386963e-10;
  if (v < 0.015625) {
    return v * fma(v, fma(v, fma(v, 0.25, 0.33333334), 0.5), 1.0);
  }
  return -log((f32(~h) + 0.5) * 2.3283064365386963e-10); // 1 - v from ~h: v itself rounds to 1
}
