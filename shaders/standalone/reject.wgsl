// Rejection sampling of chains (Leviathan et al. 2023): with p the target's law of a row, q the one that its draft x
// was drawn by, x is accepted with probability min(1, p(x) / q(x)), else the token is drawn from
//   (p - q)+ / sum of (p - q)+
// so that it has the law p in all. chosen[r] becomes x where it is accepted, the drawn token where not; rows after that
// one are of no account, and where all are accepted the last row's choice stays: it is drawn from p with noise of its own.
// At temperature 0 nothing is done: the target's choice is the law.
//
// Coins are keyed (seed, position, COIN), the noise of the draw (seed ^ RESIDUAL, position, token).
//
// One workgroup per sequence of the batch.

//use fragments/rows
//use fragments/drafts
//use fragments/noise
//use fragments/workgroup_argmax

override ROWS: u32; // verify rows a sequence
override VOCAB: u32; // of the target
override STRIDE: u32; // row stride of logits
override DRAFT_VOCAB: u32;
override DRAFT_STRIDE: u32; // stride of a slot's logits
override DRAFT_STEP: u32; // of those of a step
override DRAFT_LAWS: u32; // the first law of drafts, [steps, SLOTS]
override SLOTS: u32;
override LANES: u32;

const NONE = 0xffffffffu;
const COIN = 0xacce98u; // in the place of a token id, which stays below 2^22
const RESIDUAL = 0x5bd1e995u;

var<workgroup> rejected: u32;

@group(0) @binding(0) var<storage, read> rows: array<Row>; // [batch * ROWS] verify rows
@group(0) @binding(1) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(2) var<storage, read> drafts: array<u32>; // [slots], see drafts.wgsl
@group(0) @binding(3) var<storage, read> logits: array<f32>; // [batch * ROWS, STRIDE]
@group(0) @binding(4) var<storage, read> draft_logits: array<f32>; // [steps, slots, DRAFT_STRIDE]
@group(0) @binding(5) var<storage, read> laws: array<vec4<f32>>; // [batch * ROWS], at DRAFT_LAWS [steps, SLOTS]
@group(0) @binding(6) var<storage, read_write> chosen: array<u32>; // [batch * ROWS]

fn probability(law: vec4<f32>, min_p: f32, logit: f32) -> f32 {
  let key = ordered(logit);
  let w = exp((logit - law.x) * law.y);
  let kept = law.w > 0.0 && key > NOTHING && key >= bitcast<u32>(law.z) && w >= min_p;
  return select(0.0, w * law.w, kept);
}

// Of token i at verify row `row`.
fn p(row: u32, min_p: f32, i: u32) -> f32 {
  return probability(laws[row], min_p, logits[row * STRIDE + i]);
}

// Of token i as draft `step` of the slot.
fn q(slot: u32, step: u32, min_p: f32, i: u32) -> f32 {
  if (i >= DRAFT_VOCAB) {
    return 0.0;
  }
  let at = step * DRAFT_STEP + slot * DRAFT_STRIDE;
  return probability(laws[DRAFT_LAWS + step * SLOTS + slot], min_p, draft_logits[at + i]);
}

// The first draft that is rejected, or NONE; those before it are the choices of their rows.
fn first_rejected(slot: u32, first: u32) -> u32 {
  let sampling = slots[slot];
  if (rows[first].live == 0u || sampling.temperature == 0.0) {
    return NONE;
  }
  let most = min(ROWS - 1u, drafts[draft_count(slot)]);
  for (var j = 0u; j < most && chosen[first + j] != NOT_A_TOKEN; j++) {
    let x = drafts[draft_token(slot, j)];
    let drawn = q(slot, j, sampling.min_p, x);
    let coin = f32(hash32(sampling.seed, rows[first + j].position + 1u, COIN) >> 8u) * 0x1p-24;
    if (drawn == 0.0 || coin * drawn >= p(first + j, sampling.min_p, x)) {
      return j;
    }
    chosen[first + j] = x;
  }
  return NONE;
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first = tile.x * ROWS;
  let slot = rows[first].slot;
  if (lane == 0u) {
    rejected = first_rejected(slot, first);
  }
  let j = workgroupUniformLoad(&rejected);
  if (j == NONE) {
    return;
  }
  let row = first + j;
  let sampling = slots[slot];
  var best = NO_ARGMAX;
  for (var i = lane; i < VOCAB; i += LANES) {
    let left = p(row, sampling.min_p, i) - q(slot, j, sampling.min_p, i);
    if (left > 0.0) {
      let noise = exponential(hash32(sampling.seed ^ RESIDUAL, rows[row].position + 1u, i));
      best = better(best, argmax_of(log(left) - log(noise), i));
    }
  }
  best = best_of(best, lane);
  if (lane == 0u && best.y != NOT_A_TOKEN) {
    chosen[row] = best.y;
  }
}
