// Atomic words that some workgroups of a dispatch store and others wait for, in ranges that are read
// together: 0 means that a word is not stored yet. The workgroups that are done with a range are
// counted; the last one resets its words to 0 for the next dispatch. The reset relies on the words
// that another workgroup stored being visible once its count is: WGSL's relaxed atomics do not
// promise it, the drivers of Vulkan, to which handoffs are limited, keep to it. THREADS is the
// workgroup's size.

override TURNS: u32; // polls for missing words before the reader makes them itself
override MAKERS: u32; // workgroups that make the words of a range
override RANGES: u32;

const RANGE = $RANGEu; // words

@group(0) @binding(13) var<storage, read_write> handoff: array<atomic<u32>>; // [RANGES, RANGE], and counts, [RANGES]

var<private> readers: u32; // workgroups that read the words of a range
var<private> own_range: u32;
var<workgroup> late: u32; // whether a word did not come
// While words of another range are made again, by a reader of this one that was not counted.
var<private> uncounted: bool;
var<workgroup> last_done: u32; // whether all others are done with the range

fn done(range: u32) {
  if (uncounted) {
    return;
  }
  last_done = u32(atomicAdd(&handoff[RANGES * RANGE + range], 1u) + 1u == MAKERS + readers);
}

fn take_away(range: u32, thread: u32) {
  for (var i = thread; i < RANGE; i += THREADS) {
    atomicStore(&handoff[range * RANGE + i], 0u);
  }
  if (thread == 0u) {
    atomicStore(&handoff[RANGES * RANGE + range], 0u);
  }
}

// Called at the end of a reader, which `done` has counted.
fn handoff_leave(thread: u32) {
  if (last_done != 0u) {
    take_away(own_range, thread);
  }
}

// Called at the end of maker `group`, so that its words do not come after the range was reset. Also called at the end
// of workgroups that read what was made from the only range, because they may have it made again.
fn handoff_made(group: u32, thread: u32) {
  if (thread == 0u) {
    done(group / MAKERS);
  }
  if (workgroupUniformLoad(&last_done) != 0u) {
    take_away(group / MAKERS, thread);
  }
}
