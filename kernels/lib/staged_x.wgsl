// x of the matmuls that hold it in workgroup memory, and inner products with it. The importing file declares `staged`,
// vec4s of floats, unless $dots is packed. For a row of $STAGE vec8s:
//
//   put_vec8(row, e, lo, hi)  stores vec8 e, as `x_of` of lib/dot.wgsl makes it of floats;
//   get_vec8(row, e)          returns it, for `add_dot`.

//#import lib/dot
//#if dots == packed

var<workgroup> staged_bytes: array<vec2<u32>, $BUFFERSu * $ROWSu * $STAGEu>;
var<workgroup> staged_steps: array<f32, $BUFFERSu * $ROWSu * $STAGEu>;

fn put_vec8(row: u32, e: u32, lo: vec4<f32>, hi: vec4<f32>) {
  let own = x_of(lo, hi);
  staged_bytes[row * $STAGEu + e] = own.bytes;
  staged_steps[row * $STAGEu + e] = own.step;
}

fn get_vec8(row: u32, e: u32) -> X {
  return X(staged_bytes[row * $STAGEu + e], staged_steps[row * $STAGEu + e]);
}
//#else

// A row has the low halves of its vec8s and then the high ones, so that neighbouring lanes read neighbouring vectors.
fn get_vec8(row: u32, e: u32) -> X {
  return X(staged[row * 2u * $STAGEu + e], staged[(row * 2u + 1u) * $STAGEu + e]);
}
//#if dots == floats

fn put_vec8(row: u32, e: u32, lo: vec4<f32>, hi: vec4<f32>) {
  staged[row * 2u * $STAGEu + e] = lo;
  staged[(row * 2u + 1u) * $STAGEu + e] = hi;
}

// Stores vector h of a row's vec8s, counted in order.
fn put_half(row: u32, h: u32, four: vec4<f32>) {
  staged[(row * 2u + h % 2u) * $STAGEu + h / 2u] = four;
}

// Stores number i of the first row.
fn put_float(i: u32, value: f32) {
  staged[i / 4u % 2u * $STAGEu + i / 8u][i % 4u] = value;
}
//#else

fn put_vec8(row: u32, e: u32, lo: vec4<f32>, hi: vec4<f32>) {
  let own = x_of(lo, hi);
  staged[row * 2u * $STAGEu + e] = own.lo;
  staged[(row * 2u + 1u) * $STAGEu + e] = own.hi;
}
//#endif
//#endif
