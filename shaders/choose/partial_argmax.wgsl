// partials[r, s] = the argmax of columns [s SLICE, (s + 1) SLICE) of row r of the logits.
//
// One workgroup per slice of a row.

//use fragments/argmax
//use fragments/workgroup_argmax

override VOCAB: u32;
override STRIDE: u32; // row stride of logits
override SLICE: u32;
override LANES: u32;

@group(0) @binding(0) var<storage, read> logits: array<f32>; // [rows, STRIDE]
@group(0) @binding(1) var<storage, read_write> partials: array<Argmax>; // [rows, ceil(VOCAB / SLICE)]

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = tile.y * STRIDE;
  let first = tile.x * SLICE;
  let last = min(first + SLICE, VOCAB) - 1u;
  var best = NO_ARGMAX;
  for (var i = first + lane; i <= last; i += $EIGHTu * LANES) {
    //for j in EIGHT
    let token$j = min(i + $ju * LANES, last);
    let logit$j = logits[row + token$j];
    //end
    //for j in EIGHT
    best = better(best, argmax_of(logit$j, token$j));
    //end
  }
  best = best_of(best, lane);
  if (lane == 0u) {
    partials[tile.y * ((VOCAB + SLICE - 1u) / SLICE) + tile.x] = best;
  }
}
