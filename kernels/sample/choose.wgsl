// The target's own token at each row: chosen[r] = argmax over the kept tokens i of
//   logit[i]                      at temperature 0 (the lowest id on a tie),
//   logit[i] / T - log(E[i])      otherwise, E[i] exponential noise keyed (seed, position, i).
// The race of exponentials draws i with probability softmax(logit / T) over the tokens that top-k, top-p and min-p keep
// (lib/sampling.wgsl), so a token is a function of the logits, the seed and the position, and of nothing else.
// tests/reference/choose.ts is the same rule in float64. A logit of NaN or plus infinity, or none above minus infinity,
// gives NOT_A_TOKEN: a broken model, not a choice.
//
// One workgroup per row. The largest logit is found in the row's partial argmaxes. With GATHERS the token is first
// looked for among the few that gather.wgsl collected; all logits of the row are gone through only where those do not
// decide it.

//#import lib/rows
//#import lib/partial_argmax
//#import lib/workgroup_partial
//#import lib/sampling

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

//#if GATHERS
// The choice among the gathered tokens. They are sorted by logit and token, whatever order they were collected in, so
// that every sum has one order.

//#import lib/gathered

@group(0) @binding(5) var<storage, read> gathered: array<vec2<u32>>; // [rows, PARTIALS, SLICE_PAIRS]

var<workgroup> ends: array<u32, LANES>; // tokens of the slices up to each
var<workgroup> found: array<Argmax, LANES>; // key, token
var<workgroup> sorted: array<Argmax, LANES>;
var<workgroup> weights: array<f32, LANES>;
var<workgroup> decided: u32; // how many tokens are found; then the lowest key that is kept
var<workgroup> row_mass: f32;

const UNDECIDED = 0xffffffffu;

// The choice at row r, or NO_ARGMAX where the gathered tokens do not decide it.
fn choose_gathered(r: u32, by: Weighting, slot: Slot, position: u32, lane: u32) -> Argmax {
  let limits = slot.top_k > 0u && slot.top_k < VOCAB;
  let narrows = slot.top_p < 1.0;
  let first = r * PARTIALS * SLICE_PAIRS;
  if (!limits && !narrows) {
    var raced = NO_ARGMAX;
    if (lane < PARTIALS) {
      raced = gathered[first + lane * SLICE_PAIRS + 1u];
    }
    return workgroup_joined(raced, lane);
  }
  let count = collect(first, lane);
  if (count == UNDECIDED || (limits && slot.top_k > count)) {
    return NO_ARGMAX;
  }
  sort(count, lane);
  let floor = gathered_floor(by, slot, count, lane);
  if (floor == UNDECIDED) {
    return NO_ARGMAX;
  }
  var best = NO_ARGMAX;
  if (lane < count) {
    let own = sorted[lane];
    let logit = logit_of(own.x);
    if (is_kept(by, slot, floor, logit)) {
      best = race_key(by, slot, position, logit, own.y);
    }
  }
  return workgroup_joined(best, lane);
}

// Copies the tokens of all slices to `found`. Returns how many they are, or UNDECIDED where gather.wgsl left some out.
fn collect(first: u32, lane: u32) -> u32 {
  var own = vec2<u32>();
  if (lane < PARTIALS) {
    own = gathered[first + lane * SLICE_PAIRS];
  }
  ends[lane] = own.x;
  weights[lane] = bitcast<f32>(own.y);
  workgroupBarrier();
  var end = 0u;
  var left_out = false;
  for (var s = 0u; s <= min(lane, PARTIALS - 1u); s += 8u) {
    //#for j in 8
    end += select(0u, ends[s + $ju], s + $ju <= lane); // 0 of lanes without a slice
    left_out = left_out || ends[s + $ju] > GATHERED;
    //#endfor
  }
  workgroupBarrier();
  ends[lane] = end;
  if (lane == LANES - 1u) {
    decided = select(end, UNDECIDED, left_out || end > LANES);
    var mass = 0.0;
    for (var s = 0u; s < PARTIALS; s += 8u) {
      //#for j in 8
      mass += weights[s + $ju];
      //#endfor
    }
    row_mass = mass;
  }
  let count = workgroupUniformLoad(&decided);
  if (count != UNDECIDED) {
    for (var i = lane; i < PARTIALS * GATHERED; i += LANES) {
      let s = i / GATHERED;
      let j = i % GATHERED;
      var placed = 0u;
      if (s > 0u) {
        placed = ends[s - 1u];
      }
      if (placed + j < ends[s]) {
        found[placed + j] = gathered[first + s * SLICE_PAIRS + 2u + j];
      }
    }
  }
  workgroupBarrier();
  return count;
}

// Sorts the first `count` tokens of `found` into `sorted`.
fn sort(count: u32, lane: u32) {
  if (lane < count) {
    let own = found[lane];
    var rank = 0u;
    for (var i = 0u; i < count; i += 8u) {
      //#for j in 8
      rank += u32(i + $ju < count && before(found[i + $ju], own));
      //#endfor
    }
    sorted[rank] = own;
  }
  workgroupBarrier();
}

// The lowest key that top-k and then top-p keep, or UNDECIDED where top-p keeps more tokens than were gathered.
fn gathered_floor(by: Weighting, slot: Slot, count: u32, lane: u32) -> u32 {
  let limits = slot.top_k > 0u && slot.top_k < VOCAB;
  var floor = 0u;
  if (limits) {
    floor = sorted[slot.top_k - 1u].x;
  }
  var own = NO_ARGMAX;
  var mine = false; // whether this lane's token is one that top-k keeps
  if (lane < count) {
    own = sorted[lane];
    mine = own.x >= floor;
  }
  weights[lane] = select(0.0, weight(by, logit_of(own.x)), mine);
  workgroupBarrier();
  if (lane == 0u) {
    decided = select(floor, UNDECIDED, slot.top_p < 1.0);
    if (limits) {
      var all = 0.0;
      for (var i = 0u; i < count; i += 8u) {
        //#for j in 8
        all += weights[i + $ju]; // 0 from count on
        //#endfor
      }
      row_mass = all;
    }
  }
  let mass = workgroupUniformLoad(&row_mass);
  if (slot.top_p < 1.0 && mine) {
    var sum = 0.0;
    for (var i = 0u; i < lane; i += 8u) {
      //#for j in 8
      sum += select(0.0, weights[i + $ju], i + $ju < lane);
      //#endfor
    }
    let enough = mass * max(slot.top_p, 1e-30);
    if (sum < enough && sum + weights[lane] >= enough) {
      decided = own.x;
    }
  }
  return workgroupUniformLoad(&decided);
}
//#else
fn choose_gathered(r: u32, by: Weighting, slot: Slot, position: u32, lane: u32) -> Argmax {
  return NO_ARGMAX;
}
//#endif

// The winner of the race among all tokens of the row that are kept.
fn race(by: Weighting, slot: Slot, position: u32, floor: u32, lane: u32) -> Argmax {
  var best = NO_ARGMAX;
  for (var i = lane; i < VOCAB; i += LANES) {
    let logit = logits[by.row + i];
    if (is_kept(by, slot, floor, logit)) {
      best = better(best, race_key(by, slot, position, logit, i));
    }
  }
  return workgroup_joined(best, lane);
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let slot = slots[rows[tile.x].slot];
  var best = NO_ARGMAX;
  for (var i = lane; i < PARTIALS; i += LANES) {
    best = better(best, partials[tile.x * PARTIALS + i]);
  }
  best = workgroup_joined(best, lane);
  if (best.x == BROKEN || best.x <= NOTHING) {
    best.y = NOT_A_TOKEN;
  }
  if (slot.temperature > 0.0) {
    if (lane == 0u) {
      largest = best;
    }
    // Every lane has it already, but WGSL's uniformity analysis needs this load before a branch around barriers.
    best = workgroupUniformLoad(&largest);
    if (best.y != NOT_A_TOKEN) {
      let row = tile.x * STRIDE;
      let by = softmax_of(row, logits[row + best.y], slot);
      let position = rows[tile.x].position + 1u;
      let quick = choose_gathered(tile.x, by, slot, position, lane);
      if (lane == 0u) {
        largest = quick;
      }
      best = workgroupUniformLoad(&largest);
      if (best.y == NOT_A_TOKEN) {
        let floor = lowest_kept(by, slot, lane);
        best = race(by, slot, position, floor, lane);
      }
    }
  }
  if (lane == 0u) {
    chosen[tile.x] = best.y;
  }
}
