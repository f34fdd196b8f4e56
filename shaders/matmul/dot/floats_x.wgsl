// Inner products in f32, for weights that are floats or have zeros of their own: x as it is.

//use matmul/dot/add8

alias X = Vec8;

fn x_of(lo: vec4<f32>, hi: vec4<f32>) -> X {
  return X(lo, hi);
}

fn add_dot(sum: f32, x: X, w: Vec8) -> f32 {
  return add8(sum, x.lo, x.hi, w);
}

//for c in BLOCK_VEC8S
fn weights_$c(block: PackedBlock) -> Vec8 {
  return vec8_$c(block);
}
//end
