// The experts of a row and their weights, from the router's logits.
//
// Experts are in GROUPS equal groups by number. A group counts as much as its GROUP_BEST (1 or 2)
// best experts together; of the TOP_GROUPS best groups the TOP_K best experts are chosen, best
// first. weight = score, divided by the sum of the chosen ones if NORMALIZE, times SCALE. Of equals
// the lower number is better.
//
// One workgroup per row; an expert's rank is the number of better ones, which its lane counts. Slot:
//   scores: `fn score_row(first, lane)` computes `scores` of the logits from `first` on and `choices`, by
//     which experts are chosen (route_softmax.wgsl, route_sigmoid.wgsl).

//use scores

override EXPERTS: u32;
override STRIDE: u32; // of a row of logits
override TOP_K: u32;
override GROUPS: u32;
override TOP_GROUPS: u32;
override GROUP_BEST: u32;
override NORMALIZE: u32;
override SCALE: f32;
override LANES: u32;

const NEGATIVE = -3.0e38; // below every score

@group(0) @binding(0) var<storage, read> logits: array<f32>; // [rows, STRIDE]
@group(0) @binding(1) var<storage, read_write> experts: array<u32>; // [rows, TOP_K]
@group(0) @binding(2) var<storage, read_write> weights: array<f32>; // [rows, TOP_K]

var<workgroup> scores: array<f32, EXPERTS>;
var<workgroup> choices: array<f32, EXPERTS>;
var<workgroup> group_scores: array<f32, GROUPS>;
var<workgroup> chosen: array<f32, TOP_K>;

fn better(a: f32, i: u32, b: f32, j: u32) -> bool {
  return a > b || (a == b && i < j);
}

// The choices of all groups but the best fall below every other.
fn keep_groups(lane: u32) {
  let size = EXPERTS / GROUPS;
  for (var g = lane; g < GROUPS; g += LANES) {
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
  for (var e = lane; e < EXPERTS; e += LANES) {
    let own = e / size;
    var rank = 0u;
    for (var g = 0u; g < GROUPS; g++) {
      rank += u32(better(group_scores[g], g, group_scores[own], own));
    }
    if (rank >= TOP_GROUPS) {
      choices[e] = NEGATIVE;
    }
  }
  workgroupBarrier();
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  score_row(tile.x * STRIDE, lane);
  workgroupBarrier();
  if (TOP_GROUPS < GROUPS) {
    keep_groups(lane);
  }
  for (var e = lane; e < EXPERTS; e += LANES) {
    let own = choices[e];
    var rank = 0u;
    for (var other = 0u; other < EXPERTS; other++) {
      rank += u32(better(choices[other], other, own, e));
    }
    if (rank < TOP_K) {
      chosen[rank] = scores[e];
      experts[tile.x * TOP_K + rank] = e;
    }
  }
  workgroupBarrier();
  for (var k = lane; k < TOP_K; k += LANES) {
    var sum = 0.0;
    for (var i = 0u; i < TOP_K; i++) {
      sum += chosen[i];
    }
    weights[tile.x * TOP_K + k] = chosen[k] / select(1.0, sum + 1.0e-20, NORMALIZE == 1u) * SCALE;
  }
}
