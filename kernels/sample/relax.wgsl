// Relaxed acceptance, SGLang's tree_speculative_sampling_target_only: the target's choices are
// overwritten so that acceptance, which follows them, accepts the drafts that pass here. At the root, and at each
// draft that is accepted,
//   coin = uniform in (0, 1], keyed (seed, position); sum = 0;
//   of its children in order: p = the target's probability of the child's token; sum += p;
//   accepted if coin <= sum / ACC or p >= SINGLE, else rejected.
// Where no child is accepted the choice is drawn from the kept tokens (lib/sampling.wgsl) without the rejected ones, by
// the race that choose.wgsl ran: only where a rejected token had won it does another one win. With ACC = SINGLE = 1
// each token is emitted with the target's probability; below 1 drafts are accepted more often.
// tests/reference/relaxed.ts is the same rule in float64.
//
// A token that is ruled out (a logit of minus infinity: masks) is never accepted. A child whose token another child of
// the row had before it is left out. Sequences that choose greedily, and rows that are broken, stay as they are.
//
// One workgroup per sequence, after kept_mass.wgsl.

//#import lib/rows
//#import lib/drafts
//#import lib/partial_argmax
//#import lib/workgroup_partial
//#import lib/sampling

struct Kept {
  largest: f32, // logit
  mass: f32, // of the tokens that are kept
  floor: u32, // `lowest_kept`
}

override VOCAB: u32;
override STRIDE: u32; // row stride of logits
override LANES: u32;
override ROWS: u32; // verify rows a sequence
override DEPTH: u32; // most drafts that may be accepted
override SINGLE: f32;
override ACC: f32; // above 0

const COIN = 0xacce99u; // in the place of a token id, which stays below 2^22; see hash32
const MAX_ROWS_OF_ALL = 64; // src/speculate/round_shape.ts: MAX_ROWS

@group(0) @binding(0) var<storage, read> logits: array<f32>; // [batch * ROWS, STRIDE]
@group(0) @binding(1) var<storage, read> kept: array<Kept>; // [batch * ROWS], see kept_mass.wgsl
@group(0) @binding(2) var<storage, read> rows: array<Row>; // [batch * ROWS]
@group(0) @binding(3) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(4) var<storage, read> drafts: array<u32>; // [slots], see drafts.wgsl
@group(0) @binding(5) var<storage, read_write> chosen: array<u32>; // [batch * ROWS]

// Where the walk ended, and how many children were rejected there: the first ones of `rejected`.
struct End {
  row: u32,
  rejected: u32,
}

var<workgroup> end: End;
var<workgroup> rejected: array<u32, MAX_ROWS_OF_ALL>;

// The row of the sequence that draft i is a child of.
fn parent_of(slot: u32, i: u32) -> u32 {
  //#if TREE
  return drafts[draft_parent(slot, i)];
  //#else
  return i;
  //#endif
}

fn softmax_at(row: u32) -> Weighting {
  return softmax_of(row * STRIDE, kept[row].largest, slots[rows[row].slot]);
}

fn is_ruled_out(row: u32, token: u32) -> bool {
  return token >= VOCAB || ordered(logits[row * STRIDE + token]) <= NOTHING;
}

fn probability(row: u32, token: u32) -> f32 {
  let by = softmax_at(row);
  let logit = logits[by.row + token];
  let is_in = is_kept(by, slots[rows[row].slot], kept[row].floor, logit);
  return select(0.0, weight(by, logit) / kept[row].mass, is_in);
}

fn coin_at(row: u32) -> f32 {
  let bits = hash32(slots[rows[row].slot].seed, rows[row].position + 1u, COIN);
  return f32((bits >> 8u) + 1u) * 0x1p-24;
}

// Whether one of the first `count` of `rejected` is the token.
fn is_rejected(token: u32, count: u32) -> bool {
  for (var i = 0u; i < count; i++) {
    if (rejected[i] == token) {
      return true;
    }
  }
  return false;
}

// Walks the drafts of the sequence whose rows begin at `first` and overwrites the choices of the rows on the way.
fn walk(first: u32) -> End {
  let slot = rows[first].slot;
  let drafted = min(ROWS - 1u, drafts[draft_count(slot)]);
  var at = first;
  var out = 0u;
  var sum = 0.0;
  var depth = 0u;
  for (var i = 0u; i < drafted && depth < DEPTH && chosen[at] != NOT_A_TOKEN; i++) {
    let token = drafts[draft_token(slot, i)];
    if (first + parent_of(slot, i) != at || is_ruled_out(at, token) || is_rejected(token, out)) {
      continue;
    }
    let p = probability(at, token);
    sum += p;
    if (coin_at(at) <= sum / ACC || p >= SINGLE) {
      chosen[at] = token;
      at = first + i + 1u;
      out = 0u;
      sum = 0.0;
      depth++;
    } else {
      rejected[out] = token;
      out++;
    }
  }
  // Unless a rejected token has won the race, the choice stays.
  return End(at, select(0u, out, is_rejected(chosen[at], out)));
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first = tile.x * ROWS;
  if (rows[first].live == 0u || slots[rows[first].slot].temperature <= 0.0) {
    return;
  }
  if (lane == 0u) {
    end = walk(first);
  }
  let at = workgroupUniformLoad(&end);
  if (at.rejected == 0u) {
    return;
  }
  let slot = slots[rows[at.row].slot];
  let by = softmax_at(at.row);
  let position = rows[at.row].position + 1u;
  var best = NO_ARGMAX;
  for (var i = lane; i < VOCAB; i += LANES) {
    let logit = logits[by.row + i];
    if (is_kept(by, slot, kept[at.row].floor, logit)) {
      let one = race_key(by, slot, position, logit, i);
      if (one.x > best.x && !is_rejected(i, at.rejected)) {
        best = one;
      }
    }
  }
  best = workgroup_joined(best, lane);
  // No token is left where rounding kept the sum of all below the coin: then the choice stays.
  if (lane == 0u && best.y != NOT_A_TOKEN) {
    chosen[at.row] = best.y;
  }
}
