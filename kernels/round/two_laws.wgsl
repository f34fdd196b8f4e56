// What rejection sampling of chains reads: p, the target's law of a row, and q, the law that a draft was drawn by.
// Coins are keyed (seed, position, COIN), the noise of a draw (seed ^ RESIDUAL, position, token).

//#import lib/rows
//#import lib/drafts
//#import lib/noise
//#import lib/workgroup_argmax

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

// Uniform in [0, 1), for the draft after verify row `row`.
fn coin(seed: u32, row: u32) -> f32 {
  return f32(hash32(seed, rows[row].position + 1u, COIN) >> 8u) * 0x1p-24;
}

// Drafts of a sequence up to the first row whose logits are broken.
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

// A draw from (share * p - q)+, normed, at verify row `row`, in the place of draft j.
fn draw_rest(row: u32, j: u32, share: f32, lane: u32) -> u32 {
  let slot = rows[row].slot;
  let sampling = slots[slot];
  let rejected = drafts[draft_token(slot, j)]; // its rest is 0 but for rounding
  var best = NO_ARGMAX;
  for (var i = lane; i < VOCAB; i += LANES) {
    let left = share * p(row, sampling.min_p, i) - q(slot, j, sampling.min_p, i);
    if (left > 0.0 && i != rejected) {
      let noise = exponential(hash32(sampling.seed ^ RESIDUAL, rows[row].position + 1u, i));
      best = better(best, argmax_of(log(left) - log(noise), i));
    }
  }
  return best_of(best, lane).y;
}
