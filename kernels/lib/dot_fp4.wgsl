// Inner products with weights of 4 bits: those of a vec8 have one scale, with which their sum is multiplied instead of
// each.

struct Fp4 {
  small: Vec8, // 2^-14 of the numbers
  large: f32, // 2^14 times their scale
}

fn add_dot(sum: f32, x: X, w: Fp4) -> f32 {
  return fma(add8(0.0, x.lo, x.hi, w.small), w.large, sum);
}

//#for c in BLOCK_VEC8S
fn weights_$c(block: PackedBlock) -> Fp4 {
  return Fp4(small_e2m1(block.words[$c]), large_$c(block));
}
//#endfor
