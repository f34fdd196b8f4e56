// The few tokens of each slice of a row that choose.wgsl may choose, so that it need not go through all logits:
//   mass    the sum of exp((logit - largest) / T) over the slice
//   winner  of the race among the slice's tokens, where top-k and top-p are off (min-p may drop tokens)
//   tokens  those whose logits are not below the bound, in any order, and how many there are; no more than GATHERED
//           are stored
// The bound is the top-k-th of the slices' largest logits, so that a row has at least k such tokens and, unless its
// largest logits crowd together, not many more. Without top-k three quarters of the slices' largest logits
// are not below the bound.
//
// One workgroup per slice of a row, after slice_partials.wgsl. For rows that choose greedily nothing is written.

//#import lib/rows
//#import lib/partial_argmax
//#import lib/workgroup_partial
//#import lib/sampling
//#import lib/gathered

override VOCAB: u32;
override STRIDE: u32; // row stride of logits
override SLICE: u32; // columns
override PARTIALS: u32; // slices of a row, at most LANES
override LANES: u32;

@group(0) @binding(0) var<storage, read> logits: array<f32>; // [rows, STRIDE]
@group(0) @binding(1) var<storage, read> partials: array<Argmax>; // [rows, PARTIALS]
@group(0) @binding(2) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(3) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(4) var<storage, read_write> gathered: array<vec2<u32>>; // [rows, PARTIALS, SLICE_PAIRS]

var<workgroup> maxima: array<Argmax, LANES>;
var<workgroup> bound: u32; // key
var<workgroup> count: atomic<u32>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let slot = slots[rows[tile.y].slot];
  if (slot.temperature <= 0.0) {
    return;
  }
  let row = tile.y * STRIDE;
  let first = tile.x * SLICE;
  let end = min(first + SLICE, VOCAB);
  //#for j in 8
  let token$j = first + lane + $ju * LANES;
  let logit$j = logits[row + min(token$j, end - 1u)];
  //#endfor
  var own = NO_ARGMAX;
  if (lane < PARTIALS) {
    own = partials[tile.y * PARTIALS + lane];
  }
  maxima[lane] = own;
  let most = workgroup_joined(own, lane);
  if (lane < PARTIALS) {
    var rank = 0u;
    for (var i = 0u; i < PARTIALS; i += 8u) {
      //#for j in 8
      rank += u32(before(maxima[i + $ju], own)); // of lanes without a slice: NO_ARGMAX
      //#endfor
    }
    let limits = slot.top_k > 0u && slot.top_k < VOCAB;
    if (rank == select(PARTIALS * 3u / 4u, min(slot.top_k, PARTIALS), limits) - 1u) {
      bound = own.x;
    }
  }
  workgroupBarrier();
  let by = softmax_of(row, logit_of(most.x), slot);
  let position = rows[tile.y].position + 1u;
  let at = (tile.y * PARTIALS + tile.x) * SLICE_PAIRS;
  var best = NO_ARGMAX;
  var mass = 0.0;
  //#for j in 8
  if (token$j < end) {
    mass += select(0.0, weight(by, logit$j), ordered(logit$j) > NOTHING);
    if (is_kept(by, slot, 0u, logit$j)) {
      best = better(best, race_key(by, slot, position, logit$j, token$j));
    }
    if (ordered(logit$j) >= bound) {
      let to = atomicAdd(&count, 1u);
      if (to < GATHERED) {
        gathered[at + 2u + to] = vec2<u32>(ordered(logit$j), token$j);
      }
    }
  }
  //#endfor
  best = workgroup_joined(best, lane);
  mass = total(Sum(mass, 0.0, 0.0, 0.0), lane).x;
  if (lane == 0u) {
    gathered[at] = vec2<u32>(atomicLoad(&count), bitcast<u32>(mass));
    gathered[at + 1u] = best;
  }
}
