// What relay/read.wgsl declares. x itself is not read, its size gives the number of rows, which is one.

override TURNS: u32; // that words are looked at again before their makers' work is done here
override MAKERS: u32; // workgroups that make the words of a range of k

@group(0) @binding(9) var<storage, read_write> relay: array<atomic<u32>>; // [COLS], and who is done with each range, [SPLIT_K]

var<private> readers: u32; // workgroups that read the words of a range
var<private> own_range: u32;
var<workgroup> late: u32; // whether a word did not come
var<workgroup> last: u32; // whether all others are done with the range

// Called first, with the workgroups along y and z.
fn begin(y: u32, z: u32) {
  readers = y;
}

fn count(split: u32) {
  last = u32(atomicAdd(&relay[COLS + split], 1u) + 1u == MAKERS + readers);
}

// The last takes the words away, for the next dispatch.
fn clear(split: u32, thread: u32) {
  for (var i = thread; i < $(8 * STAGE)u; i += THREADS) {
    atomicStore(&relay[split * $(8 * STAGE)u + i], 0u);
  }
  if (thread == 0u) {
    atomicStore(&relay[COLS + split], 0u);
  }
}

// Called when a reader is done, who has counted.
fn leave(thread: u32) {
  if (last != 0u) {
    clear(own_range, thread);
  }
}

// Called when a maker is done: its words must not come after they were taken away.
fn made(group: u32, thread: u32) {
  if (thread == 0u) {
    count(group / MAKERS);
  }
  if (workgroupUniformLoad(&last) != 0u) {
    clear(group / MAKERS, thread);
  }
}
