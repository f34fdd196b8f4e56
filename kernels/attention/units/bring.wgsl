// How a workgroup of attention_units.wgsl brings rows of numbers as f16.

//#import attention/units/row_scale

// Vec8s 2i and 2i + 1, scaled, as f16 in the order of the head from `to` on, lo so much behind.
fn put_pair(to: u32, low_at: u32, i: u32, x: Vec8, y: Vec8, scale: f32) {
  if (i >= VEC8S / 2u) {
    return;
  }
  if (low_at == 0u) {
    pool[to + i] = rounded_halves(x.lo * scale, y.lo * scale);
    pool[to + VEC8S / 2u + i] = rounded_halves(x.hi * scale, y.hi * scale);
  } else {
    pool[to + i] = high_halves(x.lo * scale, y.lo * scale);
    pool[to + VEC8S / 2u + i] = high_halves(x.hi * scale, y.hi * scale);
    pool[to + low_at + i] = low_halves(x.lo * scale, y.lo * scale);
    pool[to + low_at + VEC8S / 2u + i] = low_halves(x.hi * scale, y.hi * scale);
  }
}
