// out[r] = norm(v) * x_weight + norm(w) * experts_weight with norm(v) = v / sqrt(mean(v^2) + EPS): two branches beside each
// other, to the bit as combine_experts.wgsl and two rms_norm.wgsl make their sum, the second added to the first. v is row r
// of x, summed over the SPLIT_K ranges of k of the matmul that made it, w the outputs of the row's experts, each times its
// share, in the order in which they were chosen.
//
// One workgroup per row. Lane l holds $EACH vec8s of either branch in registers, l, l + LANES, ...; the lanes' sums are added
// in the order of workgroup_sum.wgsl.

//#import lib/vec8
//#import lib/weighted_experts
//#import lib/workgroup_sum

override COLS: u32; // a multiple of 8
override EPS: f32;
override LANES: u32;
override SPLIT_K: u32; // ranges of k

alias Sum = vec2<f32>;

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>; // [SPLIT_K, rows, COLS / 4]
@group(0) @binding(1) var<storage, read> x_weight: array<vec4<f32>>; // [COLS / 4]
@group(0) @binding(2) var<storage, read_write> out: array<vec4<f32>>; // [rows, COLS / 4]
@group(0) @binding(3) var<storage, read> outputs: array<vec4<f32>>; // [rows, $EXPERTS, COLS / 4]
@group(0) @binding(4) var<storage, read> shares: array<f32>; // [rows, $EXPERTS]
@group(0) @binding(5) var<storage, read> experts_weight: array<vec4<f32>>; // [COLS / 4]

fn add_squares(sum: f32, v: Vec8) -> f32 {
  let s = fma(v.lo.w, v.lo.w, fma(v.lo.z, v.lo.z, fma(v.lo.y, v.lo.y, fma(v.lo.x, v.lo.x, sum))));
  return fma(v.hi.w, v.hi.w, fma(v.hi.z, v.hi.z, fma(v.hi.y, v.hi.y, fma(v.hi.x, v.hi.x, s))));
}

fn x_at(at: u32) -> Vec8 {
  let stride = arrayLength(&x) / SPLIT_K;
  var v = Vec8(x[at], x[at + 1u]);
  for (var s = 1u; s < SPLIT_K; s++) {
    v.lo += x[s * stride + at];
    v.hi += x[s * stride + at + 1u];
  }
  return v;
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = tile.x;
  var sum = Sum();
  //#for j in EACH
  let i$j = lane + $ju * LANES;
  var v$j = Vec8();
  var w$j = Vec8();
  var v_gain$j = Vec8();
  var w_gain$j = Vec8();
  if (i$j < COLS / 8u) {
    v$j = x_at(row * (COLS / 4u) + 2u * i$j);
    w$j = combined(row, i$j);
    v_gain$j = Vec8(x_weight[2u * i$j], x_weight[2u * i$j + 1u]);
    w_gain$j = Vec8(experts_weight[2u * i$j], experts_weight[2u * i$j + 1u]);
  }
  sum = Sum(add_squares(sum.x, v$j), add_squares(sum.y, w$j));
  //#endfor
  let square = total(sum, lane) / f32(COLS);
  let v_scale = 1.0 / sqrt(square.x + EPS);
  let w_scale = 1.0 / sqrt(square.y + EPS);
  //#for j in EACH
  if (i$j < COLS / 8u) {
    let at = row * (COLS / 4u) + 2u * i$j;
    let lo = v$j.lo * v_scale * v_gain$j.lo;
    let hi = v$j.hi * v_scale * v_gain$j.hi;
    out[at] = fma(w$j.lo * w_scale, w_gain$j.lo, lo);
    out[at + 1u] = fma(w$j.hi * w_scale, w_gain$j.hi, hi);
  }
  //#endfor
}
