// The output of a matmul whose outputs only tokens are chosen by: what is kept of each part of
// the columns, two pairs of every group of a workgroup. epilogue/partial.wgsl joins those of a group, this
// the groups'. `staged` is the workgroup memory of ending/add_lanes.wgsl. Slot:
//   partial: what is kept (partial/partial_argmax.wgsl, partial/partial_softmax.wgsl).

//use partial

override FIRST_PARTIAL: u32; // parts that a row has of the shards before

@group(0) @binding(2) var<storage, read_write> out: array<Partial>; // [rows, OUT_COLS]

// Two words as floats. `staged` holds floats, and halves are exact in them: words as floats could be NaN or
// too small, which an adapter need not keep.
fn halves_of(a: u32, b: u32) -> vec4<f32> {
  return vec4<f32>(vec4<u32>(a >> 16u, a & 0xffffu, b >> 16u, b & 0xffffu));
}

fn words_of(vector: vec4<f32>) -> vec2<u32> {
  let halves = vec4<u32>(vector);
  return (halves.xz << vec2<u32>(16u)) | halves.yw;
}

// Stores what a group has where its sums were, a vector for two words: LANES + 1 are at least as many.
fn end_group(at: u32) {
  //for v in PARTIAL_PAIRS
  staged[at + $vu] = halves_of(kept[$(2 * v)], kept[$(2 * v + 1)]);
  //end
  kept = NO_PARTIAL;
}

// Rows of x from `row` to `end`, one an invocation; their groups' results are `stride` vectors apart.
fn end_rows(thread: u32, row: u32, end: u32, part: u32, stride: u32) {
  workgroupBarrier();
  if (row + thread >= end) {
    return;
  }
  let first = thread * stride;
  let step = stride / GROUPS;
  var all = NO_PARTIAL;
  for (var g = 0u; g < GROUPS; g += $GROUPS_AT_ONCEu) {
    //for g in GROUPS_AT_ONCE
    let at$g = first + (g + $gu) * step;
    let partial$g = Partial(
      //for v in PARTIAL_PAIRS
      words_of(staged[at$g + $vu]),
      //end
    );
    //end
    //for g in GROUPS_AT_ONCE
    all = joined(all, partial$g);
    //end
  }
  out[(row + thread) * OUT_COLS + FIRST_PARTIAL + part] = all;
}
