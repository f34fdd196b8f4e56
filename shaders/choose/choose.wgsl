// The target's own token at each row: chosen[r] = argmax over the kept tokens i of
//   logit[i]                      at temperature 0 (the lowest id on a tie),
//   logit[i] / T - log(E[i])      otherwise, E[i] exponential noise keyed (seed, position, i).
// The race of exponentials draws i with probability softmax(logit / T) over the kept tokens, so a
// token is a function of the logits, the seed and the position, and of nothing else.
//
// Kept: top-k = the k largest logits and their ties; of these top-p = tokens before which (in
// falling order) less than top_p of the probability is; of these min-p = at least min_p times
// the largest probability. tests/reference/choose.ts is the same rule in float64.
//
// One workgroup per row; the largest logit is found in the row's partial argmaxes. A logit of NaN or plus
// infinity, or none above minus infinity, gives NOT_A_TOKEN: a broken model, not a choice.

//use fragments/rows
//use fragments/noise
//use fragments/argmax
//use fragments/workgroup_argmax
//use fragments/workgroup_sum

override VOCAB: u32;
override STRIDE: u32; // row stride of logits
override PARTIALS: u32; // partial argmaxes a row
override LANES: u32;

alias Sum = vec4<f32>;

var<workgroup> largest: Argmax;

@group(0) @binding(0) var<storage, read> logits: array<f32>; // [rows, STRIDE]
@group(0) @binding(1) var<storage, read> partials: array<Argmax>; // [rows, PARTIALS]
@group(0) @binding(2) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(3) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(4) var<storage, read_write> chosen: array<u32>; // [rows]

// The weight of a logit: exp((logit - largest) * scale), or 1 where tokens are counted.
struct Weigh {
  row: u32, // first logit
  largest: f32,
  scale: f32,
  count: bool,
}

fn weight(by: Weigh, logit: f32) -> f32 {
  return select(exp((logit - by.largest) * by.scale), 1.0, by.count);
}

// The mass of the tokens of each of 16 digits at bit `shift` of the key, among those that share
// the bits above it with `prefix` and are not below `floor`: digit d in [d / 4][d % 4].
fn digits(by: Weigh, floor: u32, prefix: u32, shift: u32, lane: u32) -> array<vec4<f32>, 4> {
  var sums: array<vec4<f32>, 4>;
  //for q in QUADS
  var sums$q = vec4<f32>();
  //end
  for (var i = lane; i < VOCAB; i += $UNROLLu * LANES) {
    //for j in UNROLL
    let logit$j = logits[by.row + min(i + $ju * LANES, VOCAB - 1u)];
    //end
    //for j in UNROLL
    {
      let key = ordered(logit$j);
      let shares = ((key ^ prefix) >> shift) < 16u;
      if (i + $ju * LANES < VOCAB && key >= floor && shares) {
        let digit = vec4<u32>((key >> shift) & 15u);
        let w = vec4<f32>(weight(by, logit$j));
        //for q in QUADS
        sums$q += select(vec4<f32>(), w, digit == $qu * 4u + vec4<u32>(0u, 1u, 2u, 3u));
        //end
      }
    }
    //end
  }
  //for q in QUADS
  sums[$q] = sums$q;
  //end
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

// The winner of the race among the tokens that are kept.
fn race(by: Weigh, slot: Slot, position: u32, floor: u32, lane: u32) -> Argmax {
  var best = NO_ARGMAX;
  for (var i = lane; i < VOCAB; i += LANES) {
    let logit = logits[by.row + i];
    let key = ordered(logit);
    if (key > NOTHING && key >= floor && weight(by, logit) >= slot.min_p) {
      let noise = exponential(hash32(slot.seed, position, i));
      best = better(best, argmax_of((logit - by.largest) * by.scale - log(noise), i));
    }
  }
  return best_of(best, lane);
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let slot = slots[rows[tile.x].slot];
  var best = NO_ARGMAX;
  for (var i = lane; i < PARTIALS; i += LANES) {
    best = better(best, partials[tile.x * PARTIALS + i]);
  }
  best = best_of(best, lane);
  if (best.x == BROKEN || best.x <= NOTHING) {
    best.y = NOT_A_TOKEN;
  }
  if (slot.temperature > 0.0) {
    if (lane == 0u) {
      largest = best;
    }
    // Every lane has it already, but WGSL wants proof before a branch around barriers.
    best = workgroupUniformLoad(&largest);
    if (best.y != NOT_A_TOKEN) {
      let row = tile.x * STRIDE;
      let scale = 1.0 / max(slot.temperature, 1e-30); // a denormal would give infinity
      let by = Weigh(row, logits[row + best.y], scale, false);
      let floor = kept_from(by, slot, lane);
      best = race(by, slot, rows[tile.x].position + 1u, floor, lane);
    }
  }
  if (lane == 0u) {
    chosen[tile.x] = best.y;
  }
}
