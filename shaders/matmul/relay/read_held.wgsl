// What relay/read.wgsl declares; a range of words is one of k. x itself is not read, its size gives the number of rows,
// which is one.

//use matmul/relay/counts

// Called first, with the workgroups along y and z.
fn relay_begin(y: u32, z: u32) {
  readers = y;
}
