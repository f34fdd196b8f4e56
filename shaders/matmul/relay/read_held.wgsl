// What relay/read.wgsl declares. x itself is not read, its size gives the number of rows, which is one.

override TURNS: u32; // that words are looked at again before their makers' work is done here
override MAKERS: u32; // workgroups that make the words of a range of k
override READERS: u32; // workgroups that read them

@group(0) @binding(9) var<storage, read_write> relay: array<atomic<u32>>; // [COLS], and who is done with each range, [SPLIT_K]

var<workgroup> late: u32; // whether a word did not come
var<workgroup> last: u32; // whether all others are done with the range

fn count(split: u32) {
  last = u32(atomicAdd(&relay[COLS + split], 1u) + 1u == MAKERS + READERS);
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
fn leave(split: u32, thread: u32) {
  if (last != 0u) {
    clear(split, thread);
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
