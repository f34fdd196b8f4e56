// The tokens of a row that may be chosen, and their race.
//
// Kept: top-k = the k largest logits and their ties; of these top-p = tokens before which (in
// falling order) less than top_p of the probability is; of these min-p = at least min_p times
// the largest probability.
//
// The file that uses this declares `logits`, VOCAB and LANES. Counts: UNROLL, QUADS, `foldCounts`.

//#import lib/rows
//#import lib/noise
//#import lib/argmax
//#import lib/workgroup_sum

alias Sum = vec4<f32>;

// The weight of a logit: exp((logit - largest) * scale), or 1 where tokens are counted.
struct Weigh {
  row: u32, // first logit
  largest: f32,
  scale: f32,
  count: bool,
}

fn weigh(row: u32, largest: f32, slot: Slot) -> Weigh {
  let scale = 1.0 / max(slot.temperature, 1e-30); // a denormal would give infinity
  return Weigh(row, largest, scale, false);
}

fn weight(by: Weigh, logit: f32) -> f32 {
  return select(exp((logit - by.largest) * by.scale), 1.0, by.count);
}

// The mass of the tokens of each of 16 digits at bit `shift` of the key, among those that share
// the bits above it with `prefix` and are not below `floor`: digit d in [d / 4][d % 4].
fn digits(by: Weigh, floor: u32, prefix: u32, shift: u32, lane: u32) -> array<vec4<f32>, 4> {
  var sums: array<vec4<f32>, 4>;
  //#for q in QUADS
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
        //#for q in QUADS
        sums$q += select(vec4<f32>(), w, digit == $qu * 4u + vec4<u32>(0u, 1u, 2u, 3u));
        //#endfor
      }
    }
    //#endfor
  }
  //#for q in QUADS
  sums[$q] = sums$q;
  //#endfor
  // A loop, and not four calls: the code of `total` is long.
  for (var q = 0u; q < 4u; q++) {
    sums[q] = total(sums[q], lane);
  }
  return sums;
}

// The largest key not below `floor` that has enough mass at or above it, digit by digit: as many
// tokens as `wanted` where they are counted, that share of the mass from `floor` on otherwise.
fn threshold(by: Weigh, floor: u32, wanted: f32, lane: u32) -> u32 {
  var enough = wanted;
  var key = 0u;
  var above = 0.0; // the mass of the keys above all those that share the digits found so far
  for (var place = 0u; place < 8u; place++) {
    let shift = 28u - 4u * place;
    var sums = digits(by, floor, key, shift, lane); // var: naga indexes no let by a variable
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

// The lowest key that top-k and then, of what that keeps, top-p keep.
fn kept_from(by: Weigh, slot: Slot, lane: u32) -> u32 {
  let limits = slot.top_k > 0u && slot.top_k < VOCAB;
  let narrows = slot.top_p < 1.0;
  var floor = 0u;
  for (var rule = 0u; rule < 2u; rule++) {
    let count = rule == 0u;
    if (select(narrows, limits, count)) {
      let wanted = select(max(slot.top_p, 1e-30), f32(slot.top_k), count);
      floor = threshold(Weigh(by.row, by.largest, by.scale, count), floor, wanted, lane);
    }
  }
  return floor;
}

// What is kept of a row.
struct Kept {
  largest: f32, // logit
  mass: f32, // of the tokens that are kept
  floor: u32, // `kept_from`
}

// Whether a token with this logit is kept, `floor` being `kept_from`.
fn is_kept(by: Weigh, slot: Slot, floor: u32, logit: f32) -> bool {
  let key = ordered(logit);
  return key > NOTHING && key >= floor && weight(by, logit) >= slot.min_p;
}

// The sum of the weights that are kept.
fn kept_mass(by: Weigh, slot: Slot, floor: u32, lane: u32) -> f32 {
  var mass = 0.0;
  for (var i = lane; i < VOCAB; i += LANES) {
    let logit = logits[by.row + i];
    mass += select(0.0, weight(by, logit), is_kept(by, slot, floor, logit));
  }
  return total(Sum(mass, 0.0, 0.0, 0.0), lane).x;
}

// What token i comes to in the race for `position`.
fn racer(by: Weigh, slot: Slot, position: u32, logit: f32, i: u32) -> Argmax {
  let noise = exponential(hash32(slot.seed, position, i));
  return argmax_of((logit - by.largest) * by.scale - log(noise), i);
}
