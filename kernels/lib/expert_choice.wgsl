// Routing: the experts of a row and their weights, from the router's logits in `choices`.
//
// Experts are in EXPERT_GROUPS equal groups by number. The value of a group is the sum of its GROUP_BEST (1 or 2) best
// experts. The TOP_K best experts of the TOP_GROUPS best groups are chosen, best first. A weight is the expert's score,
// divided by the sum of the chosen scores if NORMALIZE, times SCALE, with FACTORS times the expert's factor. Of equals
// the lower number is better. ADDED shared experts, which every row has, follow, each with a weight of 1, or with
// SHARED_GATE the sigmoid of the logit behind those of the experts.
//
// Scores are, by `scores`,
//   softmax  softmax of the row's logits. Experts are chosen by the logits themselves, whose order is that of the
//            scores; by the scores where the scores of a group are added up
//   biased_softmax  the same, but experts are chosen by score + bias, which balances their load (ERNIE 4.5); their
//            weights do not include it
//   sigmoid  1 / (1 + exp(-logit)). Experts are chosen by score + bias (DeepSeek-V3, `noaux_tc`)
//
// An expert's rank is the number of better ones, which SEGMENTS lanes count, each a SEGMENT of them. No
// sum depends on the number of lanes. The kernel binds `logits`, [rows, STRIDE], and `experts` and `shares`,
// [rows, TOP_K + ADDED].

override EXPERTS: u32;
override TOP_K: u32;
override ADDED: u32; // experts that every row has
override SHARED_GATE: u32; // 1: they have a gate
override EXPERT_GROUPS: u32;
override TOP_GROUPS: u32;
override GROUP_BEST: u32;
override NORMALIZE: u32;
override SCALE: f32;
override CHOICE_LANES: u32; // of the workgroup
override SEGMENTS: u32;
override SEGMENT: u32; // a multiple of 8
override PADDED: u32; // SEGMENTS * SEGMENT, EXPERTS or more

const NEGATIVE = -3.0e38; // below every score

//#if FACTORS
@group(0) @binding(12) var<storage, read> factors: array<f32>; // [EXPERTS]

var<workgroup> chosen_factors: array<f32, TOP_K>;

// The weight of the expert of rank k times its factor.
fn factored(weight: f32, k: u32) -> f32 {
  return weight * chosen_factors[k];
}
//#else
fn factored(weight: f32, k: u32) -> f32 {
  return weight;
}
//#endif

var<workgroup> scores: array<f32, EXPERTS>;
var<workgroup> choices: array<f32, PADDED>;
var<workgroup> ranks: array<atomic<u32>, EXPERTS>;
var<workgroup> group_scores: array<f32, EXPERT_GROUPS>;
var<workgroup> chosen: array<f32, TOP_K>;

//#if scores != softmax
@group(0) @binding($BIAS) var<storage, read> bias: array<f32>; // [EXPERTS]

//#endif
//#if scores == sigmoid
// Puts the scores of the row into `scores`, and what experts are chosen by into `choices`.
fn score_row(lane: u32) {
  for (var e = lane; e < EXPERTS; e += CHOICE_LANES) {
    let score = 1.0 / (1.0 + exp(-choices[e]));
    scores[e] = score;
    choices[e] = score + bias[e];
  }
}
//#else
const PARTS = 16u; // lanes that look for the largest logit and sum up

var<workgroup> part_peaks: array<f32, PARTS>;
var<workgroup> part_sums: array<f32, PARTS>;

fn largest_logit(lane: u32) -> f32 {
  for (var i = lane; i < PARTS; i += CHOICE_LANES) {
    var own = NEGATIVE;
    for (var e = i; e < EXPERTS; e += PARTS) {
      own = max(own, choices[e]);
    }
    part_peaks[i] = own;
  }
  workgroupBarrier();
  var largest = NEGATIVE;
  for (var i = 0u; i < PARTS; i++) {
    largest = max(largest, part_peaks[i]);
  }
  return largest;
}

// Puts the scores of the row into `scores`, and what experts are chosen by into `choices`.
fn score_row(lane: u32) {
  let largest = largest_logit(lane);
  for (var e = lane; e < EXPERTS; e += CHOICE_LANES) {
    scores[e] = exp(choices[e] - largest);
  }
  workgroupBarrier();
  for (var i = lane; i < PARTS; i += CHOICE_LANES) {
    var own = 0.0;
    for (var e = i; e < EXPERTS; e += PARTS) {
      own += scores[e];
    }
    part_sums[i] = own;
  }
  workgroupBarrier();
  var sum = 0.0;
  for (var i = 0u; i < PARTS; i++) {
    sum += part_sums[i];
  }
  for (var e = lane; e < EXPERTS; e += CHOICE_LANES) {
    let score = scores[e] / sum;
    scores[e] = score;
    //#if scores == biased_softmax
    choices[e] = score + bias[e];
    //#else
    if (GROUP_BEST == 2u) {
      choices[e] = score;
    }
    //#endif
  }
}
//#endif

fn better(a: f32, i: u32, b: f32, j: u32) -> bool {
  return a > b || (a == b && i < j);
}

// Experts from `first` to `end` that are better than e.
fn better_ones(first: u32, end: u32, e: u32) -> u32 {
  let own = choices[e];
  var rank = 0u;
  for (var other = first; other < end; other += 8u) {
    //#for u in 8
    rank += u32(better(choices[other + $uu], other + $uu, own, e));
    //#endfor
  }
  return rank;
}

// Sets the choices of the experts in all groups but the best below every other choice.
fn keep_groups(lane: u32) {
  let size = EXPERTS / EXPERT_GROUPS;
  for (var g = lane; g < EXPERT_GROUPS; g += CHOICE_LANES) {
    var first = NEGATIVE;
    var second = NEGATIVE;
    for (var i = 0u; i < size; i++) {
      let choice = choices[g * size + i];
      second = max(second, min(first, choice));
      first = max(first, choice);
    }
    group_scores[g] = select(first, first + second, GROUP_BEST == 2u);
  }
  workgroupBarrier();
  for (var e = lane; e < EXPERTS; e += CHOICE_LANES) {
    let own = e / size;
    var rank = 0u;
    for (var g = 0u; g < EXPERT_GROUPS; g++) {
      rank += u32(better(group_scores[g], g, group_scores[own], own));
    }
    if (rank >= TOP_GROUPS) {
      choices[e] = NEGATIVE;
    }
  }
  workgroupBarrier();
}

// Counts the better experts of each expert into `ranks`.
fn rank_experts(lane: u32) {
  for (var i = lane; i < EXPERTS * SEGMENTS; i += CHOICE_LANES) {
    let e = i % EXPERTS;
    let first = i / EXPERTS * SEGMENT;
    atomicAdd(&ranks[e], better_ones(first, first + SEGMENT, e));
  }
  workgroupBarrier();
}

// The weight of each of a row's shared experts.
fn shared_weight(row: u32) -> f32 {
  if (SHARED_GATE == 0u) {
    return 1.0;
  }
  return 1.0 / (1.0 + exp(-logits[row * STRIDE + EXPERTS]));
}

// Stores the experts of a row and their weights. All logits are in `choices`, and all lanes have passed a barrier
// since.
fn choose_experts(row: u32, lane: u32) {
  for (var i = EXPERTS + lane; i < PADDED; i += CHOICE_LANES) {
    choices[i] = NEGATIVE;
  }
  for (var e = lane; e < EXPERTS; e += CHOICE_LANES) {
    atomicStore(&ranks[e], 0u);
  }
  score_row(lane);
  workgroupBarrier();
  if (TOP_GROUPS < EXPERT_GROUPS) {
    keep_groups(lane);
  }
  rank_experts(lane);
  let first = row * (TOP_K + ADDED);
  for (var e = lane; e < EXPERTS; e += CHOICE_LANES) {
    let rank = atomicLoad(&ranks[e]);
    if (rank < TOP_K) {
      chosen[rank] = scores[e];
      //#if FACTORS
      chosen_factors[rank] = factors[e];
      //#endif
      experts[first + rank] = e;
    }
  }
  workgroupBarrier();
  for (var k = lane; k < TOP_K + ADDED; k += CHOICE_LANES) {
    if (k < TOP_K) {
      var sum = 0.0;
      for (var i = 0u; i < TOP_K; i++) {
        sum += chosen[i];
      }
      let weight = chosen[k] / select(1.0, sum + 1.0e-20, NORMALIZE == 1u) * SCALE;
      shares[first + k] = factored(weight, k);
    } else {
      experts[first + k] = EXPERTS + k - TOP_K;
      shares[first + k] = shared_weight(row);
    }
  }
}
