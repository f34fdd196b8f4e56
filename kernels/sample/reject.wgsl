// Rejection sampling of chains. Let p[i] be the target's distribution at verify row i and q[i] the distribution that
// draft x[i] was drawn from (distribution.wgsl).
//
// Token by token (Leviathan et al. 2023): x[i] is accepted with probability min(1, p[i](x[i]) / q[i](x[i])). In the
// place of the first draft that is rejected a token is drawn from
//   (p[i] - q[i])+ / sum of (p[i] - q[i])+
// so that every emitted token has the distribution p[i].
//
// With BLOCK (block verification, Sun et al. 2024, arXiv 2403.10444) drafts are accepted or rejected as a whole, which
// accepts at least as many. Of n drafts,
//   share[0] = 1, share[i + 1] = min(1, share[i] p[i](x[i]) / q[i](x[i]))
//   rest[i]  = sum of (share[i] p[i] - q[i])+ over the tokens
//   keep[i]  = rest[i] / (rest[i] + 1 - share[i]) for i < n, keep[n] = share[n]
// The largest i whose coin is below keep[i] is how many drafts are accepted, 0 if there is none; then a token is drawn
// from (share[i] p[i] - q[i])+, normed. Coins and drafts behind the first rejected draft are looked at, so the noise of
// those positions must not be used again in the next round: `slots` are then those of round_slots.wgsl.
//
// chosen[r] becomes the draft where it is accepted and the drawn token where it is not; rows behind that one do not
// matter. Where all drafts are accepted, the choice of the last row stays: it was drawn from p with noise of its own.
// Sequences at temperature 0 stay as they are: their choices are the target's already.
//
// Noise is keyed: a coin by (seed, position, COIN), the noise of a draw by (seed ^ RESIDUAL, position, token).
//
// One workgroup per sequence of the batch.

//#import lib/rows
//#import lib/drafts
//#import lib/noise
//#import lib/partial_argmax
//#import lib/workgroup_partial
//#if BLOCK
//#import lib/workgroup_sum

alias Sum = f32;
//#endif

override ROWS: u32; // verify rows a sequence
override VOCAB: u32; // of the target
override STRIDE: u32; // row stride of logits
override DRAFT_VOCAB: u32;
override DRAFT_STRIDE: u32; // from the draft logits of a slot to those of the next
override DRAFT_STEP: u32; // from the draft logits of a step to those of the next
override DRAFT_DISTRIBUTIONS: u32; // index of the first distribution of drafts, [steps, SLOTS]
override SLOTS: u32;
override LANES: u32;

const NONE = 0xffffffffu;
const COIN = 0xacce98u; // in the place of a token id, which stays below 2^22
const RESIDUAL = 0x5bd1e995u;

@group(0) @binding(0) var<storage, read> rows: array<Row>; // [batch * ROWS] verify rows
@group(0) @binding(1) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(2) var<storage, read> drafts: array<u32>; // [slots], see drafts.wgsl
@group(0) @binding(3) var<storage, read> logits: array<f32>; // [batch * ROWS, STRIDE]
@group(0) @binding(4) var<storage, read> draft_logits: array<f32>; // [steps, slots, DRAFT_STRIDE]
// [batch * ROWS], from DRAFT_DISTRIBUTIONS on [steps, SLOTS]
@group(0) @binding(5) var<storage, read> distributions: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> chosen: array<u32>; // [batch * ROWS]

fn probability(distribution: vec4<f32>, min_p: f32, logit: f32) -> f32 {
  let key = ordered(logit);
  let w = exp((logit - distribution.x) * distribution.y);
  let kept = distribution.w > 0.0 && key > NOTHING && key >= bitcast<u32>(distribution.z) && w >= min_p;
  return select(0.0, w * distribution.w, kept);
}

// The target's probability of token i at verify row `row`.
fn p(row: u32, min_p: f32, i: u32) -> f32 {
  return probability(distributions[row], min_p, logits[row * STRIDE + i]);
}

// The draft's probability of token i as draft `step` of the slot.
fn q(slot: u32, step: u32, min_p: f32, i: u32) -> f32 {
  if (i >= DRAFT_VOCAB) {
    return 0.0;
  }
  let at = step * DRAFT_STEP + slot * DRAFT_STRIDE;
  return probability(distributions[DRAFT_DISTRIBUTIONS + step * SLOTS + slot], min_p, draft_logits[at + i]);
}

// Uniform in [0, 1), for the draft after verify row `row`.
fn coin(seed: u32, row: u32) -> f32 {
  return f32(hash32(seed, rows[row].position + 1u, COIN) >> 8u) * 0x1p-24;
}

// How many drafts of the sequence are verified: those before the first row whose logits are broken.
fn drafts_of(slot: u32, first: u32) -> u32 {
  if (rows[first].live == 0u || slots[slot].temperature == 0.0) {
    return 0u;
  }
  let most = min(ROWS - 1u, drafts[draft_count(slot)]);
  for (var j = 0u; j < most; j++) {
    if (chosen[first + j] == NOT_A_TOKEN) {
      return j;
    }
  }
  return most;
}

// A token drawn from (share * p - q)+, normed, at verify row `row`, in the place of draft j.
fn draw_rest(row: u32, j: u32, share: f32, lane: u32) -> u32 {
  let slot = rows[row].slot;
  let sampling = slots[slot];
  // The rest of the draft is 0 but for rounding, unless the draft's logits were broken: then all of p is left.
  let x = drafts[draft_token(slot, j)];
  let rejected = select(NOT_A_TOKEN, x, q(slot, j, sampling.min_p, x) > 0.0);
  var best = NO_ARGMAX;
  for (var i = lane; i < VOCAB; i += LANES) {
    let left = share * p(row, sampling.min_p, i) - q(slot, j, sampling.min_p, i);
    if (left > 0.0 && i != rejected) {
      let noise = exponential(hash32(sampling.seed ^ RESIDUAL, rows[row].position + 1u, i));
      best = better(best, argmax_of(log(left) - log(noise), i));
    }
  }
  return workgroup_joined(best, lane).y;
}

//#if BLOCK
var<workgroup> count: u32;
var<workgroup> next_share: f32;

// rest[j] of the sequence, whose verify row j is `row`.
fn rest_of(row: u32, j: u32, share: f32, lane: u32) -> f32 {
  let slot = rows[row].slot;
  let min_p = slots[slot].min_p;
  var sum = 0.0;
  for (var i = lane; i < VOCAB; i += LANES) {
    sum += max(share * p(row, min_p, i) - q(slot, j, min_p, i), 0.0);
  }
  return total(sum, lane);
}

// share[j + 1], `share` being share[j].
fn share_after(row: u32, j: u32, share: f32) -> f32 {
  let slot = rows[row].slot;
  let min_p = slots[slot].min_p;
  let x = drafts[draft_token(slot, j)];
  let drawn = q(slot, j, min_p, x);
  if (drawn == 0.0) {
    return 0.0;
  }
  let wanted = share * p(row, min_p, x);
  return select(wanted / drawn, 1.0, wanted >= drawn);
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first = tile.x * ROWS;
  let slot = rows[first].slot;
  if (lane == 0u) {
    count = drafts_of(slot, first);
  }
  let most = workgroupUniformLoad(&count);
  var share = 1.0;
  var kept = 0u;
  var kept_share = 1.0;
  for (var j = 0u; j < most; j++) {
    if (lane == 0u) {
      next_share = share_after(first + j, j, share);
    }
    share = workgroupUniformLoad(&next_share);
    var keep = share;
    if (j + 1u < most && share < 1.0) {
      let rest = rest_of(first + j + 1u, j + 1u, share, lane);
      keep = rest / (rest + 1.0 - share);
    }
    if (coin(slots[slot].seed, first + j) < keep) {
      kept = j + 1u;
      kept_share = share;
    }
  }
  if (lane == 0u) {
    for (var j = 0u; j < kept; j++) {
      chosen[first + j] = drafts[draft_token(slot, j)];
    }
    count = kept;
  }
  let end = workgroupUniformLoad(&count);
  if (end >= most) {
    return;
  }
  let token = draw_rest(first + end, end, kept_share, lane);
  if (lane == 0u && token != NOT_A_TOKEN) {
    chosen[first + end] = token;
  }
}
//#else
var<workgroup> rejected: u32;

// The first draft that is rejected, or NONE; those before it become the choices of their rows.
fn first_rejected(slot: u32, first: u32) -> u32 {
  let sampling = slots[slot];
  let most = drafts_of(slot, first);
  for (var j = 0u; j < most; j++) {
    let x = drafts[draft_token(slot, j)];
    let drawn = q(slot, j, sampling.min_p, x);
    if (drawn == 0.0 || coin(sampling.seed, first + j) * drawn >= p(first + j, sampling.min_p, x)) {
      return j;
    }
    chosen[first + j] = x;
  }
  return NONE;
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first = tile.x * ROWS;
  if (lane == 0u) {
    rejected = first_rejected(rows[first].slot, first);
  }
  let j = workgroupUniformLoad(&rejected);
  if (j == NONE) {
    return;
  }
  let token = draw_rest(first + j, j, 1.0, lane);
  if (lane == 0u && token != NOT_A_TOKEN) {
    chosen[first + j] = token;
  }
}
//#endif
