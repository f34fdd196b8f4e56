// The target's own token at each row: chosen[r] = argmax over the kept tokens i of
//   logit[i]                      at temperature 0 (the lowest id on a tie),
//   logit[i] / T - log(E[i])      otherwise, E[i] exponential noise keyed (seed, position, i).
// The race of exponentials draws i with probability softmax(logit / T) over the kept tokens, so a
// token is a function of the logits, the seed and the position, and of nothing else.
//
// Kept: top-k = the k largest logits and their ties; of these top-p = tokens before which (in
// falling order) less than top_p of the probability lies; of these min-p = at least min_p times
// the largest probability. src/speculate/choose.ts is the same rule in float64.
//
// One workgroup per row. A logit of NaN or plus infinity, or none above minus infinity, gives
// NOT_A_TOKEN: a broken model, not a choice. `Row`, `Slot` and the noise come
// from the files around this one.

override VOCAB: u32;
override STRIDE: u32; // row stride of logits
override LANES: u32;

const NOT_A_TOKEN = 0xffffffffu;

@group(0) @binding(0) var<storage, read> logits: array<f32>; // [rows, STRIDE]
@group(0) @binding(1) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(2) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(3) var<storage, read_write> chosen: array<u32>; // [rows]

var<workgroup> best_score: array<f32, LANES>;
var<workgroup> best_token: array<u32, LANES>;
var<workgroup> partial: array<f32, LANES>;

// Bits in the order of the float values.
fn ordered(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
}

// NaN or plus infinity. By the bits: a compiler may assume that x == x.
fn is_broken(x: f32) -> bool {
  let bits = bitcast<u32>(x);
  return (bits & 0x7fffffffu) > 0x7f800000u || bits == 0x7f800000u;
}

// The lane's best, folded over the workgroup in the order of the lanes; lowest token on a tie.
fn winner(score: f32, token: u32, lane: u32) -> vec2<u32> {
  best_score[lane] = score;
  best_token[lane] = token;
  workgroupBarrier();
  var s = best_score[0];
  var t = best_token[0];
  for (var l = 1u; l < LANES; l++) {
    let other = best_score[l];
    let first = other == s && best_token[l] < t;
    if (other > s || first) {
      s = other;
      t = best_token[l];
    }
  }
  workgroupBarrier();
  return vec2<u32>(bitcast<u32>(s), t);
}

fn total(x: f32, lane: u32) -> f32 {
  partial[lane] = x;
  workgroupBarrier();
  var sum = 0.0;
  for (var l = 0u; l < LANES; l++) {
    sum += partial[l];
  }
  workgroupBarrier();
  return sum;
}

// The mass of tokens whose ordered logit is at least `key`: their number, or their weight.
fn mass(row: u32, key: u32, peak: f32, scale: f32, count: bool, lane: u32) -> f32 {
  var sum = 0.0;
  for (var i = lane; i < VOCAB; i += LANES) {
    let logit = logits[row + i];
    if (ordered(logit) >= key) {
      sum += select(exp((logit - peak) * scale), 1.0, count);
    }
  }
  return total(sum, lane);
}

// The largest key not below `floor` that still has `wanted` mass at or above it, bit by bit.
fn threshold(row: u32, floor: u32, wanted: f32, peak: f32, scale: f32, count: bool, lane: u32) -> u32 {
  var key = 0u;
  for (var bit = 0x80000000u; bit != 0u; bit >>= 1u) {
    let candidate = key | bit;
    if (mass(row, max(candidate, floor), peak, scale, count, lane) >= wanted) {
      key = candidate;
    }
  }
  return max(key, floor);
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = tile.x * STRIDE;
  let slot = slots[rows[tile.x].slot];
  var score = -3.4028234e38;
  var token = NOT_A_TOKEN;
  var broken = 0.0;
  for (var i = lane; i < VOCAB; i += LANES) {
    let logit = logits[row + i];
    if (is_broken(logit)) {
      broken = 1.0;
    }
    if (logit > score) {
      score = logit;
      token = i;
    }
  }
  let best = winner(score, token, lane);
  if (total(broken, lane) > 0.0 || best.y == NOT_A_TOKEN) {
    chosen[tile.x] = NOT_A_TOKEN;
    return;
  }
  if (slot.temperature <= 0.0) {
    chosen[tile.x] = best.y;
    return;
  }

  let peak = bitcast<f32>(best.x);
  let scale = 1.0 / max(slot.temperature, 1e-30); // a denormal would give infinity
  var key = 0u;
  if (slot.top_k > 0u && slot.top_k < VOCAB) {
    key = threshold(row, 0u, f32(slot.top_k), peak, scale, true, lane);
  }
  if (slot.top_p < 1.0) {
    let wanted = max(slot.top_p, 1e-30) * mass(row, key, peak, scale, false, lane);
    key = threshold(row, key, wanted, peak, scale, false, lane);
  }

  let position = rows[tile.x].position + 1u;
  score = -3.4028234e38;
  token = NOT_A_TOKEN;
  for (var i = lane; i < VOCAB; i += LANES) {
    let logit = logits[row + i];
    let kept = ordered(logit) >= key && exp((logit - peak) * scale) >= slot.min_p;
    let race = (logit - peak) * scale - log(exponential(hash32(slot.seed, position, i)));
    if (kept && race > score) {
      score = race;
      token = i;
    }
  }
  chosen[tile.x] = winner(score, token, lane).y;
}
