// The target's own token at each row: chosen[r] = argmax over the kept tokens i of
//   logit[i]                      at temperature 0 (the lowest id on a tie),
//   logit[i] / T - log(E[i])      otherwise, E[i] exponential noise keyed (seed, position, i).
// The race of exponentials draws i with probability softmax(logit / T) over the kept tokens, so a
// token is a function of the logits, the seed and the position, and of nothing else.
// Which are kept: kept.wgsl. tests/reference/choose.ts is the same rule in float64.
//
// One workgroup per row; the largest logit is found in the row's partial argmaxes. A logit of NaN or plus
// infinity, or none above minus infinity, gives NOT_A_TOKEN: a broken model, not a choice. Slot:
//   gathered: `fn quick(row, by, slot, position, lane)`, the choice where it is known without a look through the row
//     (gathered.wgsl), NO_ARGMAX where not.

//use fragments/rows
//use fragments/workgroup_argmax
//use choose/kept
//use gathered

override VOCAB: u32;
override STRIDE: u32; // row stride of logits
override PARTIALS: u32; // partial argmaxes a row
override LANES: u32;

var<workgroup> largest: Argmax;

@group(0) @binding(0) var<storage, read> logits: array<f32>; // [rows, STRIDE]
@group(0) @binding(1) var<storage, read> partials: array<Argmax>; // [rows, PARTIALS]
@group(0) @binding(2) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(3) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(4) var<storage, read_write> chosen: array<u32>; // [rows]

// The winner of the race among the tokens that are kept.
fn race(by: Weigh, slot: Slot, position: u32, floor: u32, lane: u32) -> Argmax {
  var best = NO_ARGMAX;
  for (var i = lane; i < VOCAB; i += LANES) {
    let logit = logits[by.row + i];
    if (is_kept(by, slot, floor, logit)) {
      best = better(best, racer(by, slot, position, logit, i));
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
      let by = weigh(row, logits[row + best.y], slot);
      let position = rows[tile.x].position + 1u;
      let chosen_quickly = quick(tile.x, by, slot, position, lane);
      if (lane == 0u) {
        largest = chosen_quickly;
      }
      best = workgroupUniformLoad(&largest);
      if (best.y == NOT_A_TOKEN) {
        let floor = kept_from(by, slot, lane);
        best = race(by, slot, position, floor, lane);
      }
    }
  }
  if (lane == 0u) {
    chosen[tile.x] = best.y;
  }
}
