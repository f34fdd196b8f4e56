// Log-probabilities of the emitted tokens by the target's own distribution, before bias, penalties, masks and
// temperature:
//   log p(t) = logit[t] - largest - log(sum of exp(logit - largest))
// for the token emitted there, and for the MAX largest logits, the lower id first on a tie.
//
// One workgroup per token that a sequence may emit. Every sum has one order, however many tokens there are.

//#import lib/argmax
//#import lib/partial_argmax
//#import lib/workgroup_partial
//#import lib/workgroup_sum

override VOCAB: u32;
override STRIDE: u32; // row stride of logits
override LANES: u32;
override TOKENS: u32; // most that a sequence may emit
override RESULT: u32; // words of a sequence's result
override MAX: u32;

alias Sum = f32;

@group(0) @binding(0) var<storage, read> logits: array<f32>; // [rows, STRIDE]
@group(0) @binding(1) var<storage, read> results: array<u32>; // [batch, RESULT]: tokens emitted, those tokens
// [batch, TOKENS, 1 + 2 MAX]: log p of the token; (token, log p) of the largest
@group(0) @binding(2) var<storage, read_write> logprobs: array<u32>;

// The row of logits that token j of sequence b was chosen from.
//#if TREE
// In rounds of trees it is one that accept_commit.wgsl kept.
override KEPT: u32; // where those rows begin in `last`

@group(0) @binding(3) var<storage, read> last: array<u32>; // from KEPT on [batch, TOKENS]

fn kept_row(b: u32, j: u32) -> u32 {
  return last[KEPT + b * TOKENS + j];
}
//#else
// In rounds of chains and in prompts rows are in order.
override ROWS: u32; // a sequence

fn kept_row(b: u32, j: u32) -> u32 {
  return b * ROWS + j;
}
//#endif

// The largest logit of those after `last` in their order: falling, on a tie the lower id first.
fn next_best(row: u32, last: Argmax, lane: u32) -> Argmax {
  var best = NO_ARGMAX;
  for (var i = lane; i < VOCAB; i += 8u * LANES) {
    //#for j in 8
    let token$j = min(i + $ju * LANES, VOCAB - 1u);
    let one$j = argmax_of(logits[row + token$j], token$j);
    //#endfor
    //#for j in 8
    if (one$j.x < last.x || (one$j.x == last.x && one$j.y > last.y)) {
      best = better(best, one$j);
    }
    //#endfor
  }
  return workgroup_joined(best, lane);
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let result = tile.y * RESULT;
  if (tile.x >= results[result]) {
    return;
  }
  let token = results[result + 1u + tile.x];
  if (token >= VOCAB) { // broken logits
    return;
  }
  let row = kept_row(tile.y, tile.x) * STRIDE;
  var best = next_best(row, Argmax(BROKEN, NOT_A_TOKEN), lane);
  let largest = logits[row + best.y];
  var mass = 0.0;
  for (var i = lane; i < VOCAB; i += 8u * LANES) {
    //#for j in 8
    let logit$j = logits[row + min(i + $ju * LANES, VOCAB - 1u)];
    //#endfor
    //#for j in 8
    mass += select(0.0, exp(logit$j - largest), i + $ju * LANES < VOCAB);
    //#endfor
  }
  // The largest logit's own share is 1, so log is not below 0. Without `max` a driver joins log's multiplication,
  // log2(mass) * ln 2, with a subtraction to one fma where MAX is small, and the last bit is another: an H200's does.
  let log_mass = max(log(total(mass, lane)), 0.0);
  let out = (tile.y * TOKENS + tile.x) * (1u + 2u * MAX);
  if (lane == 0u) {
    logprobs[out] = bitcast<u32>(logits[row + token] - largest - log_mass);
  }
  for (var n = 0u; n < MAX; n++) {
    if (n > 0u) {
      best = next_best(row, best, lane);
    }
    if (lane == 0u) {
      logprobs[out + 1u + 2u * n] = best.y;
      logprobs[out + 2u + 2u * n] = bitcast<u32>(logits[row + best.y] - largest - log_mass);
    }
  }
}
