// What the matmul kernels have in common.

override COLS: u32; // k; a multiple of 8
override SHARD_ROWS: u32; // rows of W in this shard; even
override OUT_COLS: u32; // row stride of out
override FIRST: u32; // column of out where the shard begins
override SPLITS: u32; // equal ranges of k whose sums leave apart
override LANES: u32; // invocations that share an output
override GROUPS: u32; // of lanes in a workgroup

@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>; // [rows, COLS / 4]: its size tells the rows
