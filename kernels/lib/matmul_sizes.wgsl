// x and the sizes of the matmuls without matrix units, the experts' too, and for how many lanes rows of W are packed.

//#if PACKED_FEW
// Quantized rows whose width leaves few whole lanes are packed for those few, but more lanes share an output.

fn packed_lanes() -> u32 {
  return $PACKED_LANESu;
}
//#else
// Quantized rows that are packed for the invocations that share an output.

fn packed_lanes() -> u32 {
  return LANES;
}
//#endif

override COLS: u32; // k; a multiple of 8
override MATRIX_ROWS: u32; // rows of W in this shard, or of one expert; even
override OUT_COLS: u32; // row stride of out
override LANES: u32; // invocations that share an output
override GROUPS: u32; // of lanes in a workgroup

@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>; // [rows, COLS / 4]: its size gives the rows
