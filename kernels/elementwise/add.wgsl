// x[r, c] += y[0, r, c] + y[1, r, c] + ..: the parts of y are added first, in their order.
//
// One invocation for four columns.

override VECTORS: u32; // fours of a row
override PARTS: u32; // of y

@group(0) @binding(0) var<storage, read_write> x: array<vec4<f32>>; // [rows, VECTORS]
@group(0) @binding(1) var<storage, read> y: array<vec4<f32>>; // [PARTS, rows, VECTORS]

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= VECTORS) {
    return;
  }
  let at = id.y * VECTORS + id.x;
  let stride = arrayLength(&y) / PARTS;
  var sum = y[at];
  for (var part = 1u; part < PARTS; part++) {
    sum += y[part * stride + at];
  }
  x[at] += sum;
}
