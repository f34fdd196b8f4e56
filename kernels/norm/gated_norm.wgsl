// The norm of each head of a row, gated: out[r, c] = weight[c % HEAD] v / sqrt(mean(v^2) + EPS) silu(z), v = x[r, c],
// z = gate[r, FIRST + c], the mean being over the HEAD columns of c's head.
//
// `put`: store writes f32. half writes each number times the row's scale as one f16, pair as two: matmuls on matrix
// units read those, see rms_norm.wgsl.
//
// One workgroup per row. Lane l has vec8s l, l + LANES, .. of it; squares are summed within a vec8, then over those of
// the head in order.

//#import lib/vec8
//#import lib/head_gate
//#import lib/store_scales
//#if F16
//#import lib/put_f16
//#endif

override COLS: u32; // a multiple of HEAD
override GATE_COLS: u32; // row stride of gate, a multiple of 4
override FIRST: u32; // a multiple of 4
override EPS: f32;
override LANES: u32;

const HEAD_VEC8S = $HEAD_VEC8Su; // HEAD / 8

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>; // [rows, COLS / 4]
@group(0) @binding(1) var<storage, read> gate: array<vec4<f32>>; // [rows, GATE_COLS / 4]
@group(0) @binding(2) var<storage, read> norm_weight: array<vec4<f32>>; // [HEAD / 4]

//#if F16
@group(0) @binding(3) var<storage, read_write> out: array<vec4<u32>>; // see lib/put_f16.wgsl
//#else
@group(0) @binding(3) var<storage, read_write> out: array<vec4<f32>>; // [rows, COLS / 4]
//#endif

var<workgroup> squares: array<f32, $WIDTH>; // of the row's vec8s

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = tile.x;
  //#for j in EACH
  let i$j = lane + $ju * LANES;
  var v$j = Vec8();
  var g$j = Vec8(); // what v is multiplied by besides its scale
  if (i$j < COLS / 8u) {
    let at = row * (COLS / 4u) + 2u * i$j;
    v$j = Vec8(x[at], x[at + 1u]);
    let z = (row * GATE_COLS + FIRST) / 4u + 2u * i$j;
    let weight = i$j % HEAD_VEC8S * 2u;
    g$j = Vec8(norm_weight[weight] * silu(gate[z]), norm_weight[weight + 1u] * silu(gate[z + 1u]));
    squares[i$j] = square4(v$j.lo) + square4(v$j.hi);
  }
  //#endfor
  workgroupBarrier();
  var peak = 0.0;
  //#for j in EACH
  if (i$j < COLS / 8u) {
    let first = i$j / HEAD_VEC8S * HEAD_VEC8S;
    var sum = 0.0;
    for (var i = 0u; i < HEAD_VEC8S; i++) {
      sum += squares[first + i];
    }
    let scale = inverseSqrt(sum / f32(8u * HEAD_VEC8S) + EPS);
    v$j = Vec8(v$j.lo * scale * g$j.lo, v$j.hi * scale * g$j.hi);
    //#if !F16
    out[row * (COLS / 4u) + 2u * i$j] = v$j.lo;
    out[row * (COLS / 4u) + 2u * i$j + 1u] = v$j.hi;
    //#endif
    peak = peak_of(peak, v$j);
  }
  //#endfor
  let y_scale = store_scales(row, lane, peak);
  //#if F16
  //#for j in EACH
  if (i$j < COLS / 8u) {
    put_f16(row, i$j, v$j.lo * y_scale, v$j.hi * y_scale);
  }
  //#endfor
  //#endif
}
