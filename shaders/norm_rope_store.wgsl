// Per-head RMSNorm of q and k (Qwen3): x / sqrt(mean(x^2) + EPS) * weight; then turns and stores
// them and v (place_head.wgsl).
//
// One workgroup per (head, row); heads run over q, k, v of a qkv row. Lane l takes rope pairs l,
// l + LANES, ...; the lanes' squares are added in order of l.

override EPS: f32;
override LANES: u32;

@group(0) @binding(0) var<storage, read> qkv: array<f32>; // [rows, Q_HEADS + 2 KV_HEADS, HEAD_DIM]
@group(0) @binding(1) var<storage, read> weight: array<f32>; // [2, HEAD_DIM]: of q, of k
@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [rows, Q_HEADS, HEAD_DIM]: q

var<workgroup> squares: array<f32, LANES>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let head = tile.x;
  let half = HEAD_DIM / 2u;
  let first = (tile.y * (Q_HEADS + 2u * KV_HEADS) + head) * HEAD_DIM;
  var square = 0.0;
  for (var w = lane; w < half; w += LANES) {
    let a = qkv[first + w];
    let b = qkv[first + half + w];
    square = fma(b, b, fma(a, a, square));
  }
  squares[lane] = square;
  workgroupBarrier();
  var sum = 0.0;
  for (var l = 0u; l < LANES; l++) {
    sum += squares[l];
  }
  let scale = 1.0 / sqrt(sum / f32(HEAD_DIM) + EPS);
  let gain = select(HEAD_DIM, 0u, head < Q_HEADS);
  for (var w = lane; w < half; w += LANES) {
    var pair = vec2<f32>(qkv[first + w], qkv[first + half + w]);
    if (head < Q_HEADS + KV_HEADS) {
      pair = pair * scale * vec2<f32>(weight[gain + w], weight[gain + half + w]);
    }
    place_head(tile.y, head, w, pair);
  }
}
