// Inner products of rounded activations and whole numbers in f32: what packed_x.wgsl sums, to the bit, where
// the adapter has no instruction for that, with the weights unpacked once for all rows of a tile.

//use matmul/dot/rounded
//use matmul/dot/add8

alias X = Vec8;

fn x_of(lo: vec4<f32>, hi: vec4<f32>) -> X {
  let scale = scale_of(lo, hi);
  return X(round(lo * scale.inverse) * scale.step, round(hi * scale.inverse) * scale.step);
}

fn add_dot(sum: f32, x: X, w: Whole) -> f32 {
  return fma(add8(0.0, x.lo, x.hi, w.vec8), w.scale, sum);
}

//for c in BLOCK_VEC8S
fn weights_$c(block: PackedBlock) -> Whole {
  return whole_$c(block);
}
//end
