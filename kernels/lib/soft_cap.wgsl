// cap tanh(score / cap), Gemma 2's soft cap. tanh is 1 from 9 on; past 44 exp overflows in some drivers.

override CAP: f32; // 0 = no cap

fn capped(score: vec4<f32>) -> vec4<f32> {
  if (CAP == 0.0) {
    return score;
  }
  return tanh(clamp(score / CAP, vec4<f32>(-15.0), vec4<f32>(15.0))) * CAP;
}
