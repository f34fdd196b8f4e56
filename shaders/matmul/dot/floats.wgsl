// Inner products of the staged matmul in f32, for weights that are floats or have zeros of their own.

//use matmul/dot/add8
//use matmul/dot/vec8

fn put_vec8(row: u32, e: u32, lo: vec4<f32>, hi: vec4<f32>) {
  staged[row * 2u * $STAGEu + e] = lo;
  staged[(row * 2u + 1u) * $STAGEu + e] = hi;
}

fn add_dot(sum: f32, x: X, w: Vec8) -> f32 {
  return add8(sum, x.lo, x.hi, w);
}

//for c in BLOCK_VEC8S
fn weights_$c(block: PackedBlock) -> Vec8 {
  return vec8_$c(block);
}
//end
