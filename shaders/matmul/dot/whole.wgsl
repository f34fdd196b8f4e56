// Inner products of the staged matmul by whole_x.wgsl.

//use matmul/dot/whole_x
//use matmul/dot/vec8

fn put_vec8(row: u32, e: u32, lo: vec4<f32>, hi: vec4<f32>) {
  let own = x_of(lo, hi);
  staged[row * 2u * $STAGEu + e] = own.lo;
  staged[(row * 2u + 1u) * $STAGEu + e] = own.hi;
}
