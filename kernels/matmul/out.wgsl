//#if out == partials
// The output of a matmul whose outputs only tokens are chosen by: what is kept of each part of
// the columns, two pairs of every group of a workgroup. The epilogue partial joins those of a group, this
// the groups'. `staged` is the workgroup memory of ending.wgsl.

//#import lib/partial_$partial

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
  //#for v in PARTIAL_PAIRS
  staged[at + $vu] = halves_of(kept[$(2 * v)], kept[$(2 * v + 1)]);
  //#endfor
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
    //#for g in GROUPS_AT_ONCE
    let at$g = first + (g + $gu) * step;
    let partial$g = Partial(
      //#for v in PARTIAL_PAIRS
      words_of(staged[at$g + $vu]),
      //#endfor
    );
    //#endfor
    //#for g in GROUPS_AT_ONCE
    all = joined(all, partial$g);
    //#endfor
  }
  out[(row + thread) * OUT_COLS + FIRST_PARTIAL + part] = all;
}
//#else if out == relay
// The output of a matmul that other workgroups of the same dispatch wait for, word by word. 0 is no word yet: a number
// that is 0 goes as -0, which sums that begin with 0 cannot tell from it. No order between words is relied on.

@group(0) @binding(2) var<storage, read_write> out: array<atomic<u32>>; // [SPLIT_K, OUT_COLS], and what relay/counts.wgsl counts

fn put_word(at: u32, value: f32) {
  let word = bitcast<u32>(value);
  atomicStore(&out[at], select(word, 0x80000000u, word == 0u));
}

fn end_group(at: u32) {}

fn end_rows(thread: u32, row: u32, end: u32, part: u32, stride: u32) {}
//#else
// The output of a matmul whose epilogue stores numbers. Nothing is done after those of a group or of a row.
//
//   end_group(at): called when the epilogue has had a group's outputs; the group's sums start at `at`.
//   end_rows(thread, row, end, part, stride): called when it has had those of rows `row` to `end`; see above.

@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [SPLIT_K, rows, OUT_COLS]

fn end_group(at: u32) {}

fn end_rows(thread: u32, row: u32, end: u32, part: u32, stride: u32) {}
//#endif
