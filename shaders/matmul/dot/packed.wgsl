// Inner products of the staged matmul by packed_x.wgsl.

//use matmul/dot/packed_x

var<workgroup> staged_bytes: array<vec4<u32>, $BUFFERSu * $ROWSu * $STAGEu>;
var<workgroup> staged_steps: array<f32, $BUFFERSu * $ROWSu * $STAGEu>;

fn put_vec8(row: u32, e: u32, lo: vec4<f32>, hi: vec4<f32>) {
  let own = x_of(lo, hi);
  staged_bytes[row * $STAGEu + e] = own.bytes;
  staged_steps[row * $STAGEu + e] = own.step;
}

fn get_vec8(row: u32, e: u32) -> X {
  return X(staged_bytes[row * $STAGEu + e], staged_steps[row * $STAGEu + e]);
}
