// Scores of choice.wgsl: 1 / (1 + exp(-logit)). Experts are chosen by score + bias, which balances
// their load (DeepSeek-V3, `noaux_tc`); their weights do not include it.

@group(0) @binding($BIAS) var<storage, read> bias: array<f32>; // [EXPERTS]

fn score_row(lane: u32) {
  for (var e = lane; e < EXPERTS; e += CHOICE_LANES) {
    let score = 1.0 / (1.0 + exp(-choices[e]));
    scores[e] = score;
    choices[e] = score + bias[e];
  }
}
