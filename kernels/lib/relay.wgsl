// Words that workgroups of a dispatch make for others of it, in ranges that are read together: 0 is no word yet. Who is
// done with a range is counted; the last takes its words away, for the next dispatch. THREADS is the workgroup's size.

override TURNS: u32; // that words are looked at again before their makers' work is done by who wants them
override MAKERS: u32; // workgroups that make the words of a range
override RANGES: u32;

const RANGE = $RANGEu; // words

@group(0) @binding(13) var<storage, read_write> relay: array<atomic<u32>>; // [RANGES, RANGE], and who is done, [RANGES]

var<private> readers: u32; // workgroups that read the words of a range
var<private> own_range: u32;
var<workgroup> late: u32; // whether a word did not come
var<private> uncounted: bool; // while words of another range are made again, by a reader of this one that was not counted
var<workgroup> last_done: u32; // whether all others are done with the range

fn done(range: u32) {
  if (uncounted) {
    return;
  }
  last_done = u32(atomicAdd(&relay[RANGES * RANGE + range], 1u) + 1u == MAKERS + readers);
}

fn take_away(range: u32, thread: u32) {
  for (var i = thread; i < RANGE; i += THREADS) {
    atomicStore(&relay[range * RANGE + i], 0u);
  }
  if (thread == 0u) {
    atomicStore(&relay[RANGES * RANGE + range], 0u);
  }
}

// Called at the end of a reader, who has counted.
fn relay_leave(thread: u32) {
  if (last_done != 0u) {
    take_away(own_range, thread);
  }
}

// Called at the end of maker `group`: its words must not come after they were taken away; and of readers of what was
// made of the only range, who may have it made again.
fn relay_made(group: u32, thread: u32) {
  if (thread == 0u) {
    done(group / MAKERS);
  }
  if (workgroupUniformLoad(&last_done) != 0u) {
    take_away(group / MAKERS, thread);
  }
}
