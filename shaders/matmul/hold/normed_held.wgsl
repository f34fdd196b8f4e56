// What normed.wgsl declares: the norm's weights and, where sums of the branch before or outputs of its experts are
// still to be added, these and where the residual stream goes. x is not written: all workgroups read it. Slot:
//   awaited: sums that the same dispatch makes (relay/sums.wgsl), or nothing.wgsl.

override EPS: f32;

@group(0) @binding(9) var<storage, read> norm_weight: array<vec4<f32>>; // [COLS / 4]
//use awaited
//for a in STORED
@group(0) @binding(10) var<storage, read> sums: array<vec4<f32>>; // [$ADDENDS, rows, COLS / 4]
//end
//for a in WEIGHED
@group(0) @binding(10) var<storage, read> outputs: array<vec4<f32>>; // [rows, $EXPERTS, COLS / 4]
@group(0) @binding(12) var<storage, read> shares: array<f32>; // [rows, $EXPERTS]
//end
//for a in STREAMED
@group(0) @binding(11) var<storage, read_write> stream: array<vec4<f32>>; // [rows, COLS / 4]: x + what is added
//end
//for a in KEPT
override KEPT_COLS: u32; // row stride
override KEPT_FIRST: u32; // first column written

@group(0) @binding(14) var<storage, read_write> kept: array<vec4<f32>>; // [rows, KEPT_COLS / 4]: the same
//end

var<workgroup> squares: array<f32, $(ROWS * NORM_LANES)>;

fn add_squares(sum: f32, v: vec4<f32>) -> f32 {
  return fma(v.w, v.w, fma(v.z, v.z, fma(v.y, v.y, fma(v.x, v.x, sum))));
}
