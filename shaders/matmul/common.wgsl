// What all matmul kernels bind and override, the experts' too.

override COLS: u32; // k; a multiple of 8
override MATRIX_ROWS: u32; // rows of W in this shard, or of one expert; even
override OUT_COLS: u32; // row stride of out
override LANES: u32; // invocations that share an output
override PACKED_LANES: u32; // what quantized rows are packed for: LANES or a part of them
override GROUPS: u32; // of lanes in a workgroup

@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>; // [rows, COLS / 4]: its size gives the rows
