// out[r, h] = the weighted sum of latents of head h of row r: the sums of the runs of cells that latent_attention.wgsl
// stored are merged (lib/latent_runs.wgsl). Zeros for padding.
//
// One workgroup per (QUADS fours of a latent, head, row).

//#import lib/latent_runs

override HEADS: u32;

const OUT4 = $OUT4u; // vec4 of a row of `out`, of which the first RANK4 are written

@group(0) @binding(2) var<storage, read_write> out: array<vec4<f32>>; // [rows, HEADS, OUT4]

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let first = tile.x * QUADS;
  let query = tile.z * HEADS + tile.y;
  let row = rows[FIRST_ROW + tile.z];
  let seen = visible_end(row) > 0u;
  if (seen) {
    add_runs(query, row, first, thread);
  }
  if (thread < QUADS && first + thread < RANK4) {
    var sum = vec4<f32>(0.0);
    if (seen) {
      sum = weighted(thread);
    }
    out[query * OUT4 + first + thread] = sum;
  }
}
