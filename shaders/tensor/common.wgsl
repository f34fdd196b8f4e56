// What the matmuls on matrix units declare alike: of weights [MATRIX_ROWS, COLS] and rows of x in stages of $STAGE of k.
// Slots:
//   load: the weights as f16, tensor/load/*.wgsl: `Loaded`, `load_weights(block)`, `halves_$p(loaded, scale)` of the
//     block's vec8 p; `vec8_of(block)`, `in_stage(chunk)` and `eight_of_x` bring x in the same order.
//   out: where an epilogue stores numbers, and what is noted of them: tensor/out_*.wgsl or tensor/tile/*.wgsl.
//   epilogue: as of matmul/matmul.wgsl; where $PREPARED is 1 it is `prepare(row, c)`, all that it reads, and
//     `finish(prepared, c, y)`, which writes: drivers let no load pass what may write to its memory.

enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;
diagnostic(off, chromium.subgroup_matrix_uniformity);

override COLS: u32;
override MATRIX_ROWS: u32; // even
override OUT_COLS: u32; // row stride of out
override FIRST: u32; // first output column of the shard
override SPLIT_K: u32;

//use out
//use epilogue
//use load

@group(0) @binding(14) var<storage, read> w_scales: array<f32>; // [MATRIX_ROWS]

const CHUNKS = $CHUNKSu; // of eight numbers, in a stage of a row
const BLOCKS = CHUNKS / $VEC8Su; // of weights, in a stage of a row
