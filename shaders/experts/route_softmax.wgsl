// Scores of route.wgsl: the softmax of a row's logits, by which experts are chosen too.

//use fragments/workgroup_sum

alias Sum = f32;

fn score_row(first: u32, lane: u32) {
  for (var e = lane; e < EXPERTS; e += LANES) {
    choices[e] = logits[first + e];
  }
  workgroupBarrier();
  var largest = NEGATIVE;
  for (var e = 0u; e < EXPERTS; e++) {
    largest = max(largest, choices[e]);
  }
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
