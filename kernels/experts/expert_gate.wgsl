// out[j, c] = g sigmoid(1.702 g) (u + 1) of job j, e its expert, where
//   g = min(x[j, 2 c] + bias[e, 2 c], LIMIT), u = clamp(x[j, 2 c + 1] + bias[e, 2 c + 1], -LIMIT, LIMIT)
// Source: GptOssExperts of transformers.
//
// One invocation per element.

override COLS: u32; // of out
override LIMIT: f32;

@group(0) @binding(0) var<storage, read> x: array<vec2<f32>>; // [jobs, COLS]
@group(0) @binding(1) var<storage, read> bias: array<vec2<f32>>; // [experts, COLS]
@group(0) @binding(2) var<storage, read> experts: array<u32>; // [jobs]
@group(0) @binding(3) var<storage, read_write> out: array<f32>; // [jobs, COLS]

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= COLS) {
    return;
  }
  let at = id.y * COLS + id.x;
  let both = x[at] + bias[experts[id.y] * COLS + id.x];
  // exp overflows for g far below -40, where |g sigmoid(1.702 g)| is below 2e-28.
  let g = clamp(both.x, -40.0, LIMIT);
  let u = clamp(both.y, -LIMIT, LIMIT);
  out[at] = g / (1.0 + exp(-1.702 * g)) * (u + 1.0);
}
