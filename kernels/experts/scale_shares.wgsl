// out[j] = shares[j] * scale[experts[j]] for every job j: what an expert counts, times a factor of its own.
//
// One invocation per job.

override JOBS: u32;

@group(0) @binding(0) var<storage, read> shares: array<f32>; // [JOBS]
@group(0) @binding(1) var<storage, read> experts: array<u32>; // [JOBS]
@group(0) @binding(2) var<storage, read> scale: array<f32>; // [experts]
@group(0) @binding(3) var<storage, read_write> out: array<f32>; // [JOBS]

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < JOBS) {
    out[id.x] = shares[id.x] * scale[experts[id.x]];
  }
}
