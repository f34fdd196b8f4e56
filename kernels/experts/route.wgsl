// Routing: the experts of a row and their weights (lib/expert_choice.wgsl), from logits in memory.
//
// One workgroup per row.

//#import lib/expert_choice

override STRIDE: u32; // of a row of logits

@group(0) @binding(0) var<storage, read> logits: array<f32>; // [rows, STRIDE]
@group(0) @binding(1) var<storage, read_write> experts: array<u32>; // [rows, TOP_K + ADDED]
@group(0) @binding(2) var<storage, read_write> shares: array<f32>; // [rows, TOP_K + ADDED]

@compute @workgroup_size(CHOICE_LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  for (var e = lane; e < EXPERTS; e += CHOICE_LANES) {
    choices[e] = logits[tile.x * STRIDE + e];
  }
  workgroupBarrier();
  choose_experts(tile.x, lane);
}
