// Calls the kernels of a launch that joins two or three (joined.ts): a, b and, with $THREE, c. Each but the first waits
// for words that the one before makes. The kernels' texts come before this one. Every name that they declare begins
// with the kernel's letter, and their `main` is a function of a workgroup's place and an invocation.
//
// The workgroups of all kernels have one size. Along z those of a come first, in rows of as many as the last kernel has
// along y, then those of b, and finally those of the last kernel in its own order. Every known adapter runs them in
// this order, but nothing relies on it. Functions of a kernel that waits for words (lib/handoff.wgsl has most of what
// it declares for that):
//
//   b_handoff_begin(y, z)                  is called first, in every workgroup, with the number of b's workgroups along
//                                        y and z;
//   b_make_again(first, count, thread)   may be called by b if words did not come: does the work of `count` workgroups
//                                        of a from `first` on, with the same bits;
//   b_handoff_made(i, thread)              is called when workgroup i of a is done;
//   b_handoff_leave(thread)                is called when a workgroup of b is done.

override a_ALONG_Y: u32; // workgroups of a along y
override a_WORKGROUPS: u32; // and along y and z together
//#if THREE
override b_ALONG_Y: u32;
override b_WORKGROUPS: u32;
//#endif
override b_PLACES_BEFORE: u32; // along z, workgroups of all kernels before b

fn b_make_again(first: u32, count: u32, thread: u32) {
  for (var i = first; i < first + count; i++) {
    a_main(vec3<u32>(0u, i % a_ALONG_Y, i / a_ALONG_Y), thread);
    workgroupBarrier();
  }
}
//#if THREE

override c_PLACES_BEFORE: u32; // along z, workgroups of a and of b

fn c_make_again(first: u32, count: u32, thread: u32) {
  b_uncounted = true;
  for (var i = first; i < first + count; i++) {
    b_main(vec3<u32>(0u, i % b_ALONG_Y, i / b_ALONG_Y), thread);
    workgroupBarrier();
  }
  b_uncounted = false;
}
//#endif

@compute @workgroup_size($SIZE)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(num_workgroups) all: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  //#if THREE
  b_handoff_begin(b_ALONG_Y, b_WORKGROUPS / b_ALONG_Y);
  // Workgroups of c may redo b's work, so they count as readers of a's words, which are one range then.
  b_readers += all.y * (all.z - c_PLACES_BEFORE);
  c_handoff_begin(all.y, all.z - c_PLACES_BEFORE);
  //#else
  b_handoff_begin(all.y, all.z - b_PLACES_BEFORE);
  //#endif
  if (tile.z < b_PLACES_BEFORE) {
    let i = tile.z * all.y + tile.y;
    if (i < a_WORKGROUPS) {
      a_main(vec3<u32>(0u, i % a_ALONG_Y, i / a_ALONG_Y), thread);
      storageBarrier();
      b_handoff_made(i, thread);
    }
    return;
  }
  //#if THREE
  if (tile.z < c_PLACES_BEFORE) {
    let i = (tile.z - b_PLACES_BEFORE) * all.y + tile.y;
    if (i < b_WORKGROUPS) {
      b_main(vec3<u32>(0u, i % b_ALONG_Y, i / b_ALONG_Y), thread);
      b_handoff_leave(thread);
      storageBarrier();
      c_handoff_made(i, thread);
    }
    return;
  }
  c_main(vec3<u32>(tile.xy, tile.z - c_PLACES_BEFORE), thread);
  c_handoff_leave(thread);
  b_handoff_made(0u, thread);
  //#else
  b_main(vec3<u32>(tile.xy, tile.z - b_PLACES_BEFORE), thread);
  b_handoff_leave(thread);
  //#endif
}
