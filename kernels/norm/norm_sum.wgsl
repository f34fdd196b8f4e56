// out[r] = norm(v) * sums_weight + norm(w) * experts_weight with norm(v) = v / sqrt(mean(v^2) + EPS): the sum of two
// parallel branches, with the same bits as combine_experts.wgsl and two rms_norm.wgsl, the second of which adds to the
// first. v is row r of a matmul's output, summed over its SPLIT_K ranges of k. w is the sum of the outputs of the row's
// experts, each times its share, in the order in which they were chosen.
//
// One workgroup per row. Lane l holds $EACH vec8s of either branch in registers, l, l + LANES, ...; the lanes' sums are
// added in the order of workgroup_sum.wgsl.

//#import lib/vec8
//#import lib/split_sum
//#import lib/weighted_experts
//#import lib/workgroup_sum

override COLS: u32; // a multiple of 8
override EPS: f32;
override LANES: u32;
override SPLIT_K: u32; // ranges of k

alias Sum = vec2<f32>;

@group(0) @binding(0) var<storage, read> sums: array<vec4<f32>>; // [SPLIT_K, rows, COLS / 4]
@group(0) @binding(1) var<storage, read> sums_weight: array<vec4<f32>>; // [COLS / 4]
@group(0) @binding(2) var<storage, read_write> out: array<vec4<f32>>; // [rows, COLS / 4]
@group(0) @binding(3) var<storage, read> outputs: array<vec4<f32>>; // [rows, $EXPERTS, COLS / 4]
@group(0) @binding(4) var<storage, read> shares: array<f32>; // [rows, $EXPERTS]
@group(0) @binding(5) var<storage, read> experts_weight: array<vec4<f32>>; // [COLS / 4]

//#import lib/add_squares

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = tile.x;
  //#for j in EACH
  let i$j = lane + $ju * LANES;
  //#endfor
  //#import lib/branch_sum_statements
  //#for j in EACH
  if (i$j < COLS / 8u) {
    let at = row * (COLS / 4u) + 2u * i$j;
    out[at] = branch_sum$j.lo;
    out[at + 1u] = branch_sum$j.hi;
  }
  //#endfor
}
