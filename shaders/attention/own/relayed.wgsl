// Where attention_row.wgsl has the heads of its only row from: other workgroups of the dispatch make them
// (matmul/relay/out.wgsl), all in one range.

//use matmul/relay/counts

// Called first, with the workgroups along y and z.
fn relay_begin(y: u32, z: u32) {
  readers = y * z;
}
