// The argmax of a slice of a row of logits, as partial_argmax.wgsl finds it, and what a softmax needs of it:
//   partials[r, s] = (key, token, bits of sum of exp(logit - M), 0), M the slice's largest logit
// over columns [s SLICE, (s + 1) SLICE); the sum is 0 where no logit is above minus infinity.
//
// One workgroup per slice of a row.

//use fragments/argmax
//use fragments/workgroup_argmax
//use fragments/workgroup_sum

override VOCAB: u32;
override STRIDE: u32; // row stride of logits
override SLICE: u32;
override LANES: u32;

alias Sum = f32;

@group(0) @binding(0) var<storage, read> logits: array<f32>; // [rows, STRIDE]
@group(0) @binding(1) var<storage, read_write> partials: array<vec4<u32>>; // [rows, ceil(VOCAB / SLICE)]

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
  let largest = logits[row + best.y];
  var sum = 0.0;
  for (var i = first + lane; i <= last; i += $EIGHTu * LANES) {
    //for j in EIGHT
    let logit$j = logits[row + min(i + $ju * LANES, last)];
    //end
    //for j in EIGHT
    sum += select(0.0, exp(logit$j - largest), i + $ju * LANES <= last);
    //end
  }
  sum = total(sum, lane);
  if (lane == 0u) {
    let some = select(0u, bitcast<u32>(sum), best.x > NOTHING);
    partials[tile.y * ((VOCAB + SLICE - 1u) / SLICE) + tile.x] = vec4<u32>(best, some, 0u);
  }
}
