// The distribution that choose.wgsl draws the token of a row from, where the temperature T is above 0:
//   distributions[r] = (largest logit, 1 / T, bits of the lowest key that is kept, 1 / sum of the kept weights)
// so that p(i) = exp((logit[i] - largest) / T) times the last number, for the tokens that top-k, top-p and min-p keep
// (lib/sampling.wgsl). All four numbers are 0 where the row chooses greedily or its logits are broken. Rows that are
// padding write nothing.
//
// One workgroup per row.

//#import lib/rows
//#import lib/argmax
//#import lib/partial_argmax
//#import lib/workgroup_partial
//#import lib/sampling

override VOCAB: u32;
override STRIDE: u32; // row stride of logits
override PARTIALS: u32; // partial argmaxes a row
override LANES: u32;
override FIRST: u32; // index of the first row's distribution, or of the first slot's
override BY_SLOT: u32; // 1: distributions are stored by slot, 0: by row

var<workgroup> largest: Argmax;

@group(0) @binding(0) var<storage, read> logits: array<f32>; // [rows, STRIDE]
@group(0) @binding(1) var<storage, read> partials: array<Argmax>; // [rows, PARTIALS]
@group(0) @binding(2) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(3) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(4) var<storage, read_write> distributions: array<vec4<f32>>; // from FIRST on [rows] or [slots]

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = rows[tile.x];
  let slot = slots[row.slot];
  var best = NO_ARGMAX;
  for (var i = lane; i < PARTIALS; i += LANES) {
    best = better(best, partials[tile.x * PARTIALS + i]);
  }
  best = workgroup_joined(best, lane);
  if (lane == 0u) {
    let usable = row.live == 1u && slot.temperature > 0.0;
    largest = select(NO_ARGMAX, best, usable && best.x != BROKEN && best.x > NOTHING);
  }
  best = workgroupUniformLoad(&largest);
  var own = vec4<f32>();
  if (best.y != NOT_A_TOKEN) {
    let first = tile.x * STRIDE;
    let by = softmax_of(first, logits[first + best.y], slot);
    let floor = lowest_kept(by, slot, lane);
    own = vec4<f32>(by.largest, by.scale, bitcast<f32>(floor), 1.0 / kept_mass(by, slot, floor, lane));
  }
  if (lane == 0u && row.live == 1u) {
    distributions[FIRST + select(tile.x, row.slot, BY_SLOT == 1u)] = own;
  }
}
