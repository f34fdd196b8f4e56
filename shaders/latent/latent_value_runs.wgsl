// Of latent_value.wgsl: weighted sums of latents that are still in runs, of one row; every workgroup
// of a head adds them.
//
// Slot:
//   runs: `weigh` and `combined`, see latent_runs_*.wgsl.

//use runs

override COUNT: u32; // rows

var<workgroup> whole: array<vec4<f32>, RANK4>;

fn row_count() -> u32 {
  return COUNT;
}

fn mix(query: u32, row: u32, thread: u32) {
  let own = rows[FIRST_ROW + row];
  weigh(query, own, thread);
  for (var quad = thread; quad < RANK4; quad += $THREADSu) {
    whole[quad] = combined(query, own, quad);
  }
  workgroupBarrier();
}

fn mixed(query: u32, i: u32) -> vec4<f32> {
  return whole[i];
}
