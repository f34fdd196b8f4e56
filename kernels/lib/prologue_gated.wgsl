// Prologue of matmul_resident.wgsl: the heads of x are normed and gated on the way, as in norm/gated_norm.wgsl. A range
// of k has whole heads.

//#import lib/head_gate

override EPS: f32;
override GATE_COLS: u32; // row stride of gate, a multiple of 4
override GATE_FIRST: u32; // a multiple of 4

const HEAD_VEC8S = $HEAD_VEC8Su; // vec8s of a head

@group(0) @binding(9) var<storage, read> norm_weight: array<vec4<f32>>; // [head / 4]
@group(0) @binding(10) var<storage, read> gate: array<vec4<f32>>; // [rows, GATE_COLS / 4]

var<workgroup> squares: array<f32, $(ROWS * STAGE)>; // of the vec8s
