// The output of matmul_tensor.wgsl whose epilogue stores numbers.
//
//   taken(): what is to be noted of the outputs that an invocation gave the epilogue since it was called last;
//   gather(own, peak, lanes, first): called by a subgroup when all of its outputs of rows are there, each invocation with
//     a row `own` of the workgroup and the largest `taken` of it; `lanes` side by side, a power of two, have the same row,
//     and are `first` or not;
//   end_row(row, own): called by one invocation when the workgroup has gathered all its outputs of the row.

@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [SPLIT_K, rows, OUT_COLS]

fn taken() -> f32 {
  return 0.0;
}

fn gather(own: u32, peak: f32, lanes: u32, first: bool) {}

fn end_row(row: u32, own: u32) {}
