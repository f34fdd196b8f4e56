// Scores of choice.wgsl: the softmax of a row's logits. Experts are chosen by the logits themselves, whose order is
// the scores'; by the scores where those of a group are added up.

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
    if (GROUP_BEST == 2u) {
      choices[e] = score;
    }
  }
}
