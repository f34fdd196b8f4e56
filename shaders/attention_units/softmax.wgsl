// Scores and weights of a split in attention_units.wgsl.

//use fragments/soft_cap
//use attention_units/halves
//use attention_units/power

// Four of the split's scores from `c` on; NEGATIVE where they are not seen.
fn scores_of(query: u32, c: u32, first: u32, unit: f32) -> vec4<f32> {
  let sums = bitcast<vec4<f32>>(pool[SCORES_AT + query * SCORE_PITCH + c / 4u]);
  let back = vec4(k_inverse[c], k_inverse[c + 1u], k_inverse[c + 2u], k_inverse[c + 3u]);
  let cells = vec4(first + c) + vec4(0u, 1u, 2u, 3u);
  let sight = seen[query];
  let visible = (cells >= vec4(sight.x)) & (cells < vec4(sight.y));
  return select(vec4(NEGATIVE), capped(sums * unit * back * SCALE), visible);
}

fn exponents_of(c: u32) -> vec4<f32> {
  return vec4(v_exponent[c], v_exponent[c + 1u], v_exponent[c + 2u], v_exponent[c + 3u]);
}

fn most_of(x: vec4<f32>) -> f32 {
  return max(max(x.x, x.y), max(x.z, x.w));
}

fn weights_of(score: vec4<f32>, peak: f32) -> vec4<f32> {
  return select(exp2(fma(score, vec4(LOG2_E), vec4(-peak))), vec4<f32>(), score == vec4(NEGATIVE));
}

// Weighs eight cells from `c` on. Returns the sum of their weights.
fn weigh(query: u32, c: u32, a: vec4<f32>, b: vec4<f32>, peak: f32, lift: f32) -> f32 {
  let wa = weights_of(a, peak);
  let wb = weights_of(b, peak);
  let pa = wa * powers(exponents_of(c) + vec4(lift));
  let pb = wb * powers(exponents_of(c + 4u) + vec4(lift));
  let at = SCORES_AT + query * SCORE_PITCH + c / 8u;
  if (Q_LOW_AT == 0u) {
    pool[at] = rounded_halves(pa, pb);
  } else {
    pool[at] = high_halves(pa, pb);
    pool[at + SPLIT_CELLS / 8u] = low_halves(pa, pb);
  }
  let sum = wa + wb;
  return (sum.x + sum.y) + (sum.z + sum.w);
}
