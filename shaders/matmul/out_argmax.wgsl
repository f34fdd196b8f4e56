// The output of a matmul of which only the largest of a row's outputs is wanted: the
// partial argmax of each part of the columns, two pairs of every group of a workgroup. epilogue/argmax.wgsl finds the best of a group,
// this the best of the groups. `staged` is the workgroup memory of ending/add_lanes.wgsl.

//use fragments/argmax

override FIRST_PARTIAL: u32; // partial argmaxes that a row has of the shards before

@group(0) @binding(2) var<storage, read_write> out: array<Argmax>; // [rows, OUT_COLS]

// Stores a group's best where its sums were. `staged` holds floats, and the halves of words are exact in
// them: words as floats could be NaN or too small, which an adapter need not keep.
fn end_group(at: u32) {
  let halves = vec4<u32>(best.x >> 16u, best.x & 0xffffu, best.y >> 16u, best.y & 0xffffu);
  staged[at] = vec4<f32>(halves);
  best = NO_ARGMAX;
}

// Rows of x from `row` to `end`, one an invocation; their groups' bests are `stride` vectors apart.
fn end_rows(thread: u32, row: u32, end: u32, part: u32, stride: u32) {
  workgroupBarrier();
  if (row + thread >= end) {
    return;
  }
  let first = thread * stride;
  let step = stride / GROUPS;
  var most = NO_ARGMAX;
  for (var g = 0u; g < GROUPS; g += $GROUPS_AT_ONCEu) {
    //for g in GROUPS_AT_ONCE
    let halves$g = vec4<u32>(staged[first + (g + $gu) * step]);
    most = better(most, Argmax((halves$g.x << 16u) | halves$g.y, (halves$g.z << 16u) | halves$g.w));
    //end
  }
  out[(row + thread) * OUT_COLS + FIRST_PARTIAL + part] = most;
}
