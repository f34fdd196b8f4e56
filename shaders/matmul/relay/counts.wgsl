// Words that workgroups of a dispatch make for others of it, in ranges that are read together: 0 is no word yet. Readers
// of a range are counted; the last takes its words away, for the next dispatch. Once a reader has made words itself, the
// others may come at any time, so that no reader trusts a word of the buffer again. THREADS is the workgroup's size.

override TURNS: u32; // that words are looked at again before their makers' work is done by who wants them
override MAKERS: u32; // workgroups that make the words of a range
override RANGES: u32;

const RANGE = $RANGEu; // words

// [RANGES, RANGE], how many have read each range, [RANGES], and in the last whether a reader has made words itself.
@group(0) @binding(9) var<storage, read_write> relay: array<atomic<u32>>;

var<private> readers: u32; // workgroups that read the words of a range
var<private> own_range: u32;
var<private> own_count: u32; // of readers, this one the last; looked at when the workgroup is done
var<workgroup> late: u32; // whether a word did not come
var<workgroup> last_reader: u32;

// Of one invocation, for all would ask for the same word.
fn fallen(thread: u32) -> u32 {
  if (thread != 0u) {
    return 0u;
  }
  return atomicLoad(&relay[arrayLength(&relay) - 1u]);
}

fn fall() {
  atomicStore(&relay[arrayLength(&relay) - 1u], 1u);
}

fn count_reader(range: u32, thread: u32) {
  own_range = range;
  if (thread == 0u) {
    own_count = atomicAdd(&relay[RANGES * RANGE + range], 1u) + 1u;
  }
}

// Called at the end of a reader, who has counted.
fn relay_leave(thread: u32) {
  if (thread == 0u) {
    last_reader = u32(own_count == readers);
  }
  if (workgroupUniformLoad(&last_reader) == 0u) {
    return;
  }
  for (var i = thread; i < RANGE; i += THREADS) {
    atomicStore(&relay[own_range * RANGE + i], 0u);
  }
  if (thread == 0u) {
    atomicStore(&relay[RANGES * RANGE + own_range], 0u);
  }
}
