// Token embeddings that each layer has of its own (Gemma 4 E2B), joined with a projection of the hidden row:
//   out[l, r] = (norm(PROJECTED_SCALE projected[r, l]) * weight + TOKEN_SCALE tokens[r, l]) / sqrt(2)
// where norm(x) = x / sqrt(mean(x^2) + EPS).
//
// One workgroup per (layer, row). Lane i takes numbers i, i + LANES, ...; the lanes' squares are added in order.

override LAYERS: u32;
override WIDTH: u32; // of a layer's embedding
override LAYER_WORDS: u32; // from layer to layer of out
override EPS: f32;
override TOKEN_SCALE: f32;
override PROJECTED_SCALE: f32;

const LANES = 32u;
const HALF_ROOT = 0.7071067811865476;

@group(0) @binding(0) var<storage, read> tokens: array<f32>; // [rows, LAYERS, WIDTH]
@group(0) @binding(1) var<storage, read> projected: array<f32>; // [rows, LAYERS, WIDTH]
@group(0) @binding(2) var<storage, read> weight: array<f32>; // [WIDTH]
@group(0) @binding(3) var<storage, read_write> out: array<f32>; // [LAYERS, LAYER_WORDS]

var<workgroup> squares: array<f32, LANES>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first = (tile.y * LAYERS + tile.x) * WIDTH;
  var own = 0.0;
  for (var i = lane; i < WIDTH; i += LANES) {
    let x = PROJECTED_SCALE * projected[first + i];
    own = fma(x, x, own);
  }
  squares[lane] = own;
  workgroupBarrier();
  var sum = 0.0;
  for (var i = 0u; i < LANES; i++) {
    sum += squares[i];
  }
  let scale = PROJECTED_SCALE / sqrt(sum / f32(WIDTH) + EPS);
  let to = tile.x * LAYER_WORDS + tile.y * WIDTH;
  for (var i = lane; i < WIDTH; i += LANES) {
    let normed = projected[first + i] * scale * weight[i];
    out[to + i] = (normed + TOKEN_SCALE * tokens[first + i]) * HALF_ROOT;
  }
}
