// Selects what is verified of each sequence's tree: the ROWS - 1 best of its pool (lib/tree_pool.wgsl), the first on a
// tie, in the order of the pool. A parent scores no less than its children and comes before them, so it is among them
// too.
//
// One workgroup per sequence of the batch.

//#import lib/constants
//#import lib/drafts
//#import lib/tree_pool

override ROWS: u32; // verify rows a sequence
override POOL: u32; // of a sequence
override LEVELS: u32;
override LANES: u32;

var<workgroup> selected: array<atomic<u32>, $WORDS>; // a bit for each candidate

@group(0) @binding(0) var<storage, read> batch_slots: array<u32>; // [batch] slot of each sequence
@group(0) @binding(1) var<storage, read> pool: array<vec2<u32>>; // [batch, POOL] (token, bits of its score)
@group(0) @binding(2) var<storage, read> frontier: array<u32>; // [batch, LEVELS, WIDTH] place in the pool
@group(0) @binding(3) var<storage, read_write> drafts: array<u32>; // [slots], see drafts.wgsl

fn score(place: u32, at: u32) -> f32 {
  return bitcast<f32>(pool[place * POOL + at].y);
}

// How many are selected before `at`.
fn index_of(at: u32) -> u32 {
  var count = 0u;
  for (var word = 0u; word < at / 32u; word++) {
    count += countOneBits(atomicLoad(&selected[word]));
  }
  return count + countOneBits(atomicLoad(&selected[at / 32u]) & ((1u << (at % 32u)) - 1u));
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let place = tile.x;
  let slot = batch_slots[place];
  if (slot == NO_SLOT) {
    return;
  }
  for (var word = lane; word < $WORDSu; word += LANES) {
    atomicStore(&selected[word], 0u);
  }
  workgroupBarrier();
  for (var at = lane; at < POOL; at += LANES) {
    let own = score(place, at);
    var rank = 0u;
    for (var other = 0u; other < POOL && rank < ROWS - 1u; other++) {
      let its = score(place, other);
      rank += u32(its > own || (its == own && other < at));
    }
    if (rank < ROWS - 1u) {
      atomicOr(&selected[at / 32u], 1u << (at % 32u));
    }
  }
  workgroupBarrier();
  for (var at = lane; at < POOL; at += LANES) {
    if (((atomicLoad(&selected[at / 32u]) >> (at % 32u)) & 1u) == 0u) {
      continue;
    }
    let i = index_of(at);
    drafts[draft_token(slot, i)] = pool[place * POOL + at].x;
    var parent = 0u;
    let level = level_of(at);
    if (level > 0u) {
      parent = 1u + index_of(frontier[(place * LEVELS + level - 1u) * WIDTH + parent_of(at)]);
    }
    drafts[draft_parent(slot, i)] = parent;
  }
}
