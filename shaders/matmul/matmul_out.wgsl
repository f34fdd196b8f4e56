// What a matmul leaves where outputs are numbers. `finish` stores them; nothing is left to do when those of
// a group or of a row are finished.

@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [SPLITS, rows, OUT_COLS]

fn end_group(at: u32) {}

fn end_rows(thread: u32, row: u32, end: u32, part: u32, stride: u32) {}
