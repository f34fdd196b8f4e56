// RMSNorm over each head of q and k, in place (Qwen3): x = x / sqrt(mean(x^2) + EPS) * weight.
//
// One workgroup per (head, row), one invocation; heads 0..Q_HEADS-1 are q, the rest k. HEAD_DIM
// is small, and a serial sum is one fixed order.

override HEAD_DIM: u32;
override Q_HEADS: u32;
override ROW_COLS: u32; // row stride of qkv
override EPS: f32;

@group(0) @binding(0) var<storage, read_write> qkv: array<f32>; // [rows, ROW_COLS]
@group(0) @binding(1) var<storage, read> q_weight: array<f32>; // [HEAD_DIM]
@group(0) @binding(2) var<storage, read> k_weight: array<f32>; // [HEAD_DIM]

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) tile: vec3<u32>) {
  let first = tile.y * ROW_COLS + tile.x * HEAD_DIM;
  var sum = 0.0;
  for (var i = 0u; i < HEAD_DIM; i++) {
    sum = fma(qkv[first + i], qkv[first + i], sum);
  }
  let scale = 1.0 / sqrt(sum / f32(HEAD_DIM) + EPS);
  for (var i = 0u; i < HEAD_DIM; i++) {
    let weight = select(k_weight[i], q_weight[i], tile.x < Q_HEADS);
    qkv[first + i] = qkv[first + i] * scale * weight;
  }
}
