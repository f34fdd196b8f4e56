// q, k and v with a bias (Qwen2).

@group(0) @binding(8) var<storage, read> bias: array<f32>; // [Q_HEADS + 2 KV_HEADS, HEAD_DIM]

fn biased(sum: vec2<f32>, at: u32) -> vec2<f32> {
  return sum + vec2<f32>(bias[at], bias[at + HEAD_DIM / 2u]);
}
