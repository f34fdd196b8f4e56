// The mass that the probability of a token is divided by, for relax.wgsl:
//   kept[r] = (largest logit, sum of exp((logit - largest) / T) over the kept tokens, lowest key that is kept)
// The kept tokens are those of lib/sampling.wgsl. Rows that choose greedily or that are broken (see choose.wgsl) are
// left as they are.
//
// One workgroup per row, after choose.wgsl, whose partial argmaxes it reads.

//#import lib/rows
//#import lib/partial_argmax
//#import lib/workgroup_partial
//#import lib/sampling

struct Kept {
  largest: f32, // logit
  mass: f32, // of the tokens that are kept
  floor: u32, // `lowest_kept`
}

override VOCAB: u32;
override STRIDE: u32; // row stride of logits
override PARTIALS: u32; // partial argmaxes a row
override LANES: u32;

var<workgroup> largest: Argmax;

@group(0) @binding(0) var<storage, read> logits: array<f32>; // [rows, STRIDE]
@group(0) @binding(1) var<storage, read> partials: array<Argmax>; // [rows, PARTIALS]
@group(0) @binding(2) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(3) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(4) var<storage, read_write> kept: array<Kept>; // [rows]

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let slot = slots[rows[tile.x].slot];
  if (rows[tile.x].live == 0u || slot.temperature <= 0.0) {
    return;
  }
  var best = NO_ARGMAX;
  for (var i = lane; i < PARTIALS; i += LANES) {
    best = better(best, partials[tile.x * PARTIALS + i]);
  }
  best = workgroup_joined(best, lane);
  if (lane == 0u) {
    largest = best;
  }
  // Every lane has it already, but WGSL's uniformity analysis needs this load before a branch around barriers.
  best = workgroupUniformLoad(&largest);
  if (best.x == BROKEN || best.x <= NOTHING) {
    return;
  }
  let row = tile.x * STRIDE;
  let by = softmax_of(row, logits[row + best.y], slot);
  let floor = lowest_kept(by, slot, lane);
  let mass = kept_mass(by, slot, floor, lane);
  if (lane == 0u) {
    kept[tile.x] = Kept(by.largest, mass, floor);
  }
}
