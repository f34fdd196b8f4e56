// partials[r, s] = the argmax, or with it the softmax's sum, of columns [s SLICE, (s + 1) SLICE) of row r of the
// logits; see lib/partial_argmax.wgsl and lib/partial_softmax.wgsl.
//
// One workgroup per slice of a row.

//#import lib/partial_$partial
//#import lib/workgroup_partial

override VOCAB: u32;
override STRIDE: u32; // row stride of logits
override SLICE: u32;
override LANES: u32;

@group(0) @binding(0) var<storage, read> logits: array<f32>; // [rows, STRIDE]
@group(0) @binding(1) var<storage, read_write> partials: array<Partial>; // [rows, ceil(VOCAB / SLICE)]

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = tile.y * STRIDE;
  let first = tile.x * SLICE;
  let end = min(first + SLICE, VOCAB);
  var kept = NO_PARTIAL;
  for (var i = first + lane; i < end; i += 8u * LANES) {
    //#for j in 8
    let token$j = i + $ju * LANES;
    let logit$j = logits[row + min(token$j, end - 1u)];
    //#endfor
    //#for j in 8
    kept = joined(kept, select(NO_PARTIAL, partial_of(logit$j, token$j), token$j < end));
    //#endfor
  }
  kept = workgroup_joined(kept, lane);
  if (lane == 0u) {
    partials[tile.y * ((VOCAB + SLICE - 1u) / SLICE) + tile.x] = kept;
  }
}
