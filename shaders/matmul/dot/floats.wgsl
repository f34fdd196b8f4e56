// Inner products of the staged matmul in f32 (floats_x.wgsl).

//use matmul/dot/floats_x
//use matmul/dot/vec8

fn put_vec8(row: u32, e: u32, lo: vec4<f32>, hi: vec4<f32>) {
  staged[row * 2u * $STAGEu + e] = lo;
  staged[(row * 2u + 1u) * $STAGEu + e] = hi;
}

// Vector h of a row's vec8s in order.
fn put_half(row: u32, h: u32, four: vec4<f32>) {
  staged[(row * 2u + h % 2u) * $STAGEu + h / 2u] = four;
}

// Number i of the first row.
fn put_float(i: u32, value: f32) {
  staged[i / 4u % 2u * $STAGEu + i / 8u][i % 4u] = value;
}
