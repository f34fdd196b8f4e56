// Calls the kernels of two launches, a and b, that do not wait for each other (fused.ts). What a workgroup does depends
// on its number: those of a come first. The kernels' texts come before this one. Every name that they declare begins
// with the kernel's letter, except for workgroup memory that both use, and their `main` is a function of a workgroup's
// place and an invocation.

override a_WORKGROUPS: u32;
override a_ALONG_X: u32; // workgroups of a along x and y
override a_ALONG_Y: u32;
override b_ALONG_X: u32;
override b_ALONG_Y: u32;

// The place of workgroup `i` of a launch.
fn place_of(i: u32, along_x: u32, along_y: u32) -> vec3<u32> {
  return vec3<u32>(i % along_x, i / along_x % along_y, i / along_x / along_y);
}

@compute @workgroup_size($SIZE)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  if (tile.x < a_WORKGROUPS) {
    a_main(place_of(tile.x, a_ALONG_X, a_ALONG_Y), thread);
  } else {
    b_main(place_of(tile.x - a_WORKGROUPS, b_ALONG_X, b_ALONG_Y), thread);
  }
}
