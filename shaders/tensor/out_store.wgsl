// The output of a matmul on matrix units whose epilogue stores numbers.
//
//   end_row(row): called when an invocation has given the epilogue its outputs of a row.

@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [SPLIT_K, rows, OUT_COLS]

fn end_row(row: u32) {}

fn fold(lanes: u32) {}
