// out[r, c] = sum_k weights[r, k] * y[r, k, c], with ADD 1 added to out[r, c]: the weighted outputs of a row's experts,
// added in the order in which they were chosen.
//
// One invocation per row and four columns.

override COLS4: u32; // columns / 4
override TOP_K: u32;
override ADD: u32; // 1: added to out

@group(0) @binding(0) var<storage, read> y: array<vec4<f32>>; // [rows, TOP_K, COLS4]
@group(0) @binding(1) var<storage, read> weights: array<f32>; // [rows, TOP_K]
@group(0) @binding(2) var<storage, read_write> out: array<vec4<f32>>; // [rows, COLS4]
//#if BIASED
@group(0) @binding(3) var<storage, read> bias: array<vec4<f32>>; // [experts, COLS4], added to y
@group(0) @binding(4) var<storage, read> experts: array<u32>; // [rows, TOP_K]
//#endif

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= COLS4) {
    return;
  }
  let job = id.y * TOP_K;
  let at = id.y * COLS4 + id.x;
  var sum = vec4<f32>(0.0);
  if (ADD == 1u) {
    sum = out[at];
  }
  for (var k = 0u; k < TOP_K; k++) {
    //#if BIASED
    let output = y[(job + k) * COLS4 + id.x] + bias[experts[job + k] * COLS4 + id.x];
    sum = fma(vec4<f32>(weights[job + k]), output, sum);
    //#else
    sum = fma(vec4<f32>(weights[job + k]), y[(job + k) * COLS4 + id.x], sum);
    //#endif
  }
  out[at] = sum;
}
