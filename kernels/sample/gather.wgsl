// What choose.wgsl needs of each slice of a row that samples, so that it need not look through the row:
//   mass   the sum of exp((logit - largest) / T)
//   raced  the winner of the race among the slice's tokens, of which min-p alone drops some
//   tokens those with logits not below the bound, in no order, and how many; what passes GATHERED is counted only
// The bound is one of the slices' largest logits, the top-k-th of them, so that a row has at least k such tokens and,
// unless its largest logits crowd together, not many more. Without top-k three quarters of them are not below it.
//
// One workgroup per slice of a row, after slice_partials.wgsl. Rows that choose greedily have nothing written.

//#import lib/rows
//#import lib/workgroup_argmax
//#import sample/kept
// What gather.wgsl leaves of a slice, in pairs of words: the count of its tokens and the mass; the winner of
// the race; keys and tokens.

const GATHERED = $GATHEREDu; // most tokens of a slice
const SLICE_PAIRS = 2u + GATHERED;

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
  let most = best_of(own, lane);
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
  let by = weigh(row, logit_of(most.x), slot);
  let position = rows[tile.y].position + 1u;
  let at = (tile.y * PARTIALS + tile.x) * SLICE_PAIRS;
  var best = NO_ARGMAX;
  var mass = 0.0;
  //#for j in 8
  if (token$j < end) {
    mass += select(0.0, weight(by, logit$j), ordered(logit$j) > NOTHING);
    if (is_kept(by, slot, 0u, logit$j)) {
      best = better(best, racer(by, slot, position, logit$j, token$j));
    }
    if (ordered(logit$j) >= bound) {
      let to = atomicAdd(&count, 1u);
      if (to < GATHERED) {
        gathered[at + 2u + to] = vec2<u32>(ordered(logit$j), token$j);
      }
    }
  }
  //#endfor
  best = best_of(best, lane);
  mass = total(Sum(mass, 0.0, 0.0, 0.0), lane).x;
  if (lane == 0u) {
    gathered[at] = vec2<u32>(atomicLoad(&count), bitcast<u32>(mass));
    gathered[at + 1u] = best;
  }
}
