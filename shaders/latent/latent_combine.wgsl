// out[r, h] = weighted sum of latents of head h of row r, of the runs of cells that latent_attention.wgsl
// leaves. One workgroup per (QUADS fours of a latent, head, row).
//
// Slot:
//   runs: `combined`, see latent_runs_*.wgsl.

//use runs

override HEADS: u32;

const OUT4 = $OUT4u; // vec4 of a row of `out`, of which the first RANK4 are written
const QUADS = 64u;

@group(0) @binding(2) var<storage, read_write> out: array<vec4<f32>>; // [rows, HEADS, OUT4]

@compute @workgroup_size(QUADS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let quad = tile.x * QUADS + thread;
  let query = tile.z * HEADS + tile.y;
  let row = rows[FIRST_ROW + tile.z];
  let sum = combined(query, row, min(quad, RANK4 - 1u), thread, QUADS);
  if (quad < RANK4) {
    out[query * OUT4 + quad] = sum;
  }
}
