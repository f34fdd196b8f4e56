// Of latent_value.wgsl: weighted sums of latents that are still in runs, of one row; every workgroup
// of a head adds them.
//
// Slot:
//   runs: `combined`, see latent_runs_*.wgsl.

//use runs

override COUNT: u32; // rows

var<workgroup> whole: array<vec4<f32>, RANK4>;

fn row_count() -> u32 {
  return COUNT;
}

fn mix(query: u32, row: u32, thread: u32) {
  let own = rows[FIRST_ROW + row];
  for (var first = 0u; first < RANK4; first += $THREADSu) {
    let quad = first + thread;
    let sum = combined(query, own, min(quad, RANK4 - 1u), thread, $THREADSu);
    if (quad < RANK4) {
      whole[quad] = sum;
    }
  }
  workgroupBarrier();
}

fn mixed(query: u32, i: u32) -> vec4<f32> {
  return whole[i];
}
