// The output of a matmul whose epilogue stores numbers. Nothing is done after those of a group or of a row.
//
//   end_group(at): called when the epilogue has had a group's outputs; the group's sums start at `at`.
//   end_rows(thread, row, end, part, stride): called when it has had those of rows `row` to `end`; see out_partial.wgsl.

@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [SPLIT_K, rows, OUT_COLS]

fn end_group(at: u32) {}

fn end_rows(thread: u32, row: u32, end: u32, part: u32, stride: u32) {}
