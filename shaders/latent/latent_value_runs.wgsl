// Of latent_value.wgsl: weighted sums of latents that are still in runs, of one row; every workgroup
// of a head adds them.
//
// Slot:
//   runs: `add_runs`, see latent_lanes.wgsl.

//use runs

override COUNT: u32; // rows

var<workgroup> whole: array<vec4<f32>, RANK4>;

fn row_count() -> u32 {
  return COUNT;
}

fn mix(query: u32, row: u32, thread: u32) {
  let own = rows[FIRST_ROW + row];
  let seen = visible_end(own) > 0u;
  for (var first = 0u; first < RANK4; first += QUADS) {
    add_runs(query, own, first, thread);
    if (thread < QUADS && first + thread < RANK4) {
      whole[first + thread] = select(vec4<f32>(0.0), weighted(thread), seen);
    }
    workgroupBarrier();
  }
}

fn mixed(query: u32, i: u32) -> vec4<f32> {
  return whole[i];
}
