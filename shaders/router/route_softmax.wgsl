// Scores of choice.wgsl: the softmax of a row's logits, by which experts are chosen too. The file that
// uses this declares `Sum`, f32.

//use fragments/workgroup_sum

const PEAKS = 16u; // lanes that look for the largest logit

var<workgroup> peaks: array<f32, PEAKS>;

fn largest_logit(lane: u32) -> f32 {
  for (var i = lane; i < PEAKS; i += LANES) {
    var own = NEGATIVE;
    for (var e = i; e < EXPERTS; e += PEAKS) {
      own = max(own, choices[e]);
    }
    peaks[i] = own;
  }
  workgroupBarrier();
  var largest = NEGATIVE;
  for (var i = 0u; i < PEAKS; i++) {
    largest = max(largest, peaks[i]);
  }
  return largest;
}

fn score_row(lane: u32) {
  let largest = largest_logit(lane);
  var sum = 0.0;
  for (var e = lane; e < EXPERTS; e += LANES) {
    sum += exp(choices[e] - largest);
  }
  let all = total(sum, lane);
  for (var e = lane; e < EXPERTS; e += LANES) {
    let score = exp(choices[e] - largest) / all;
    scores[e] = score;
    choices[e] = score;
  }
}
