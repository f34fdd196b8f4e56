// The output of a matmul on matrix units whose epilogue stores numbers, of workgroups of many rows.
//
//   gather(own): called by an invocation when it has given the epilogue an output, or none, of row `own` of the
//     workgroup;
//   end_row(row, own): called by one invocation when the workgroup has given the epilogue all its outputs of the row.

@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [SPLIT_K, rows, OUT_COLS]

fn gather(own: u32) {}

fn end_row(row: u32, own: u32) {}
