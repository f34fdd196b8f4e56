// Adds level LEVEL of each sequence's tree to its pool (lib/tree_pool.wgsl), and where a further level follows, chooses
// the WIDTH candidates that it goes on from (the frontier) and writes their rows:
//   score = the parent's score * probability
//   node r of the frontier: position length + LEVEL, stored at cell length + LEVEL WIDTH + r
// The draft's keys and values of a tree are scratch behind the committed cells; draft-extend overwrites them. The
// candidates of level 0 (FIRST_LEVEL) are the tokens that the last forward of the head found most probable for the
// slot, and all feed the slot's own hidden row; those of a further level are WIDTH of each row of the forward before.
//
// One workgroup per sequence of the batch.

//#import lib/rows
//#import lib/tree_pool

override LEVEL: u32;
override LEVELS: u32; // of the tree
override POOL: u32; // of a sequence
override GOES_ON: u32; // 1: a further level follows
override LANES: u32;

var<workgroup> scores: array<f32, $CANDIDATES>;

@group(0) @binding(0) var<storage, read> batch_slots: array<u32>; // [batch] slot of each sequence
@group(0) @binding(1) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(2) var<storage, read> top: array<vec2<u32>>; // the candidates
@group(0) @binding(3) var<storage, read_write> pool: array<vec2<u32>>; // [batch, POOL] (token, bits of its score)
@group(0) @binding(4) var<storage, read_write> frontier: array<u32>; // [batch, LEVELS, WIDTH] place in the pool
@group(0) @binding(5) var<storage, read_write> rows: array<Row>; // [batch, WIDTH] of the level that follows
@group(0) @binding(6) var<storage, read_write> hidden: array<u32>; // [batch, WIDTH] hidden row that each feeds

//#if FIRST_LEVEL
override KEPT: u32; // tokens kept for each slot, WIDTH or more

// Candidate c of the sequence: (token, bits of its probability).
fn candidate(place: u32, slot: u32, c: u32) -> vec2<u32> {
  return top[slot * KEPT + c];
}

// The hidden row that a candidate feeds.
fn hidden_row(place: u32, slot: u32, parent: u32) -> u32 {
  return slot;
}
//#else
// Candidate c of the sequence: (token, bits of its probability).
fn candidate(place: u32, slot: u32, c: u32) -> vec2<u32> {
  return top[place * WIDTH * WIDTH + c];
}

// The hidden row that a child of node `parent` of the frontier feeds.
fn hidden_row(place: u32, slot: u32, parent: u32) -> u32 {
  return place * WIDTH + parent;
}
//#endif

// Place in the pool of node r of a level's frontier.
fn node(place: u32, level: u32, r: u32) -> u32 {
  return frontier[(place * LEVELS + level) * WIDTH + r];
}

fn tree_row(place: u32, slot: u32, c: u32, rank: u32) -> Row {
  let cell = slots[slot].length + LEVEL * WIDTH + rank;
  if (cell >= slots[slot].limit) {
    return Row();
  }
  var path = vec4<u32>();
  var r = rank;
  var at = pool_level(LEVEL) + c;
  for (var level = LEVEL; ; level--) {
    path[level / 4u] |= (level * WIDTH + r) << (8u * (level % 4u));
    if (level == 0u) {
      break;
    }
    r = parent_of(at);
    at = node(place, level - 1u, r);
  }
  var made = chain_row(pool[place * POOL + pool_level(LEVEL) + c].x, slot, slots[slot].length + LEVEL);
  made.cell = cell;
  made.base = slots[slot].length;
  made.path = path;
  return made;
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let place = tile.x;
  let slot = batch_slots[place];
  if (slot == NO_SLOT) {
    for (var r = lane; r < WIDTH; r += LANES) {
      rows[place * WIDTH + r] = Row();
      hidden[place * WIDTH + r] = NO_SLOT;
    }
    return;
  }
  let first = place * POOL + pool_level(LEVEL);
  for (var c = lane; c < $CANDIDATESu; c += LANES) {
    let found = candidate(place, slot, c);
    var score = bitcast<f32>(found.y);
    if (LEVEL > 0u) {
      score *= bitcast<f32>(pool[place * POOL + node(place, LEVEL - 1u, c / WIDTH)].y);
    }
    pool[first + c] = vec2<u32>(found.x, bitcast<u32>(score));
    scores[c] = score;
  }
  workgroupBarrier();
  if (GOES_ON == 0u) {
    return;
  }
  for (var c = lane; c < $CANDIDATESu; c += LANES) {
    var rank = 0u;
    for (var other = 0u; other < $CANDIDATESu && rank < WIDTH; other++) {
      rank += u32(scores[other] > scores[c] || (scores[other] == scores[c] && other < c));
    }
    if (rank < WIDTH) {
      frontier[(place * LEVELS + LEVEL) * WIDTH + rank] = pool_level(LEVEL) + c;
      rows[place * WIDTH + rank] = tree_row(place, slot, c, rank);
      hidden[place * WIDTH + rank] = hidden_row(place, slot, c / WIDTH);
    }
  }
}
