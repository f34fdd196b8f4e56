// Sampling from a row of logits: which tokens top-k, top-p and min-p keep, and the race that draws one of them.
//
// Top-k keeps the k largest logits and their ties; of these, top-p keeps the tokens before which (in falling order)
// less than top_p of the probability lies; of these, min-p keeps those of at least min_p times the largest
// probability. A token is drawn by the race of exponentials: argmax of logit / T - log(E[i]), E[i] exponential noise,
// draws i with probability softmax(logit / T).
//
// The kernel declares `logits`, VOCAB and LANES. Parameters: UNROLL, STAGES and REST (`samplingCounts`).

//#import lib/rows
//#import lib/noise
//#import lib/argmax
//#import lib/workgroup_sum

alias Sum = vec4<f32>;

// How the logits of a row are weighted: by exp((logit - largest) * scale), or by 1 where tokens are counted.
struct Weighting {
  row: u32, // index of the row's first logit
  largest: f32, // logit
  scale: f32, // 1 / T
  count: bool,
}

fn softmax_of(row: u32, largest: f32, slot: Slot) -> Weighting {
  let scale = 1.0 / max(slot.temperature, 1e-30); // a denormal would give infinity
  return Weighting(row, largest, scale, false);
}

fn weight(by: Weighting, logit: f32) -> f32 {
  return select(exp((logit - by.largest) * by.scale), 1.0, by.count);
}

// The summed weights of the tokens whose key (lib/argmax.wgsl) has each of the 16 hexadecimal digits at bit `shift`,
// among the tokens that share the bits above it with `prefix` and are not below `floor`: digit d in [d / 4][d % 4].
fn digit_masses(by: Weighting, floor: u32, prefix: u32, shift: u32, lane: u32) -> array<vec4<f32>, 4> {
  var sums: array<vec4<f32>, 4>;
  //#for q in 4
  var sums$q = vec4<f32>();
  //#endfor
  for (var i = lane; i < VOCAB; i += $UNROLLu * LANES) {
    //#for j in UNROLL
    let logit$j = logits[by.row + min(i + $ju * LANES, VOCAB - 1u)];
    //#endfor
    //#for j in UNROLL
    {
      let key = ordered(logit$j);
      let shares = ((key ^ prefix) >> shift) < 16u;
      if (i + $ju * LANES < VOCAB && key >= floor && shares) {
        let digit = vec4<u32>((key >> shift) & 15u);
        let w = vec4<f32>(weight(by, logit$j));
        //#for q in 4
        sums$q += select(vec4<f32>(), w, digit == $qu * 4u + vec4<u32>(0u, 1u, 2u, 3u));
        //#endfor
      }
    }
    //#endfor
  }
  //#for q in 4
  sums[$q] = sums$q;
  //#endfor
  // A loop, and not four calls: the code of `total` is long.
  for (var q = 0u; q < 4u; q++) {
    sums[q] = total(sums[q], lane);
  }
  return sums;
}

// The largest key not below `floor` that has enough mass at or above it, found digit by digit. Enough is `wanted`
// tokens where they are counted, otherwise the share `wanted` of the mass from `floor` on.
fn threshold(by: Weighting, floor: u32, wanted: f32, lane: u32) -> u32 {
  var enough = wanted;
  var key = 0u;
  var above = 0.0; // the mass of the keys above all those that share the digits found so far
  for (var place = 0u; place < 8u; place++) {
    let shift = 28u - 4u * place;
    var sums = digit_masses(by, floor, key, shift, lane); // var: naga indexes no let by a variable
    if (place == 0u && !by.count) {
      let all = sums[0] + sums[1] + sums[2] + sums[3];
      enough = wanted * (all.x + all.y + all.z + all.w);
    }
    var digit = 15u;
    for (; digit > 0u; digit--) {
      let sum = above + sums[digit / 4u][digit % 4u];
      if (sum >= enough) {
        break;
      }
      above = sum;
    }
    key |= digit << shift;
  }
  return max(key, floor);
}

// The lowest key that top-k, and top-p of what top-k keeps, keep.
fn lowest_kept(by: Weighting, slot: Slot, lane: u32) -> u32 {
  let limits = slot.top_k > 0u && slot.top_k < VOCAB;
  let narrows = slot.top_p < 1.0;
  var floor = 0u;
  for (var rule = 0u; rule < 2u; rule++) {
    let count = rule == 0u;
    if (select(narrows, limits, count)) {
      let wanted = select(max(slot.top_p, 1e-30), f32(slot.top_k), count);
      floor = threshold(Weighting(by.row, by.largest, by.scale, count), floor, wanted, lane);
    }
  }
  return floor;
}

// Whether a token with this logit is kept, `floor` being `lowest_kept`.
fn is_kept(by: Weighting, slot: Slot, floor: u32, logit: f32) -> bool {
  let key = ordered(logit);
  return key > NOTHING && key >= floor && weight(by, logit) >= slot.min_p;
}

// The sum of the weights that are kept.
fn kept_mass(by: Weighting, slot: Slot, floor: u32, lane: u32) -> f32 {
  var mass = 0.0;
  for (var i = lane; i < VOCAB; i += LANES) {
    let logit = logits[by.row + i];
    mass += select(0.0, weight(by, logit), is_kept(by, slot, floor, logit));
  }
  return total(Sum(mass, 0.0, 0.0, 0.0), lane).x;
}

// The key of token i in the race for `position`: that of logit / T - log(E[i]).
fn race_key(by: Weighting, slot: Slot, position: u32, logit: f32, i: u32) -> Argmax {
  let noise = exponential(hash32(slot.seed, position, i));
  return argmax_of((logit - by.largest) * by.scale - log(noise), i);
}
