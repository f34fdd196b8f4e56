// What RMSNorm multiplies a head by: 1 / sqrt(mean(x^2) + EPS).

override EPS: f32;

fn norm_scale(squares: f32, count: u32) -> f32 {
  return 1.0 / sqrt(squares / f32(count) + EPS);
}
