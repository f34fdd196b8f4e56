// What the target chooses from at each row r, where something beside the model has a say:
//   adjusted[r, i] = penalized(r, i, logits[r, i]) where token i is allowed at row r, minus infinity elsewhere.
// A logit that is no finite number stays as it is: minus infinity is ruled out already, and a broken
// model is to be found where a token is chosen.
//
// One workgroup per SLICE columns of a row. Slots:
//   penalty: `fn begin_row(row, lane)`, called by all lanes first; `fn penalized(token, logit)`.
//   mask: `fn allowed(row, token)`.

//use penalty
//use mask

override VOCAB: u32;
override STRIDE: u32; // row stride of logits and adjusted
override SLICE: u32;
override LANES: u32;

const MINUS_INFINITY = 0xff800000u;

@group(0) @binding(0) var<storage, read> logits: array<u32>; // [rows, STRIDE] bits of f32: WGSL has no infinity
@group(0) @binding(1) var<storage, read_write> adjusted: array<u32>; // [rows, STRIDE]

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = tile.y;
  begin_row(row, lane);
  let end = min((tile.x + 1u) * SLICE, VOCAB);
  for (var i = tile.x * SLICE + lane; i < end; i += LANES) {
    var bits = logits[row * STRIDE + i];
    if ((bits & 0x7f800000u) != 0x7f800000u) {
      let made = bitcast<u32>(penalized(i, bitcast<f32>(bits)));
      bits = select(MINUS_INFINITY, made, allowed(row, i));
    }
    adjusted[row * STRIDE + i] = bits;
  }
}
